#include "kernels/recurrent/conditional.h"

#include "tests/cuda/cells.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

struct ConditionalSizes {
  AttentionKind kind = AttentionKind::additive;
  std::int64_t steps = 3, batch = 3;
  bool dcontexts = true;   ///< the contexts have a gradient of their own
  bool backward = true;    ///< or decoding: several rows read one sentence
  bool projected = false;  ///< with an output projection
  bool guided = false;     ///< with links of the last head
};

void check(Parity& p, const CellSizes& c, const ConditionalSizes& s) {
  const Unit& unit = *c.unit;
  p.sizes("{}; {} steps {} batch {} backward {} projected {}", c.text(),
          s.kind == AttentionKind::dot ? "dot" : "additive", s.steps, s.batch, s.backward,
          s.projected);
  const std::int64_t n = s.steps * s.batch, h = c.width, source = 7, heads = 2, space = 10,
                     wide = unit.inputs * h;
  const std::int64_t sentences = s.backward ? s.batch : 2, kept = s.backward ? n : s.batch,
                     width = 12 * c.groups, attended = s.projected ? 14 : width;
  const bool normal = c.normal;
  const BothCell lower(p, c, kept, s.batch), higher(p, c, kept, s.batch);
  const auto x = p.floats(n * wide), keys = p.floats(source * sentences * space),
             memory = p.floats(source * sentences * attended), v = p.floats(space),
             bias = p.floats(wide), gain = p.floats(wide, 1.0f), norm_bias = p.floats(wide);
  std::vector<float> exp_keys(
      static_cast<std::size_t>(source * sentences * space));  // what the CPU reads
  attention_exp_keys(p.cpu(), source * sentences * space, keys(p.cpu()), exp_keys.data());
  std::vector<std::int32_t> some_lengths, some_rows;
  for (std::int64_t b = 0; b < sentences; ++b)
    some_lengths.push_back(static_cast<std::int32_t>(source - 2 * b % source));
  for (std::int64_t b = 0; b < s.batch; ++b)
    some_rows.push_back(static_cast<std::int32_t>(b % sentences));
  const auto lengths = p.integers(some_lengths), sentence = p.integers(some_rows);
  const PackedWeights query(p, 1, h, 1, space), context(p, c.groups, width, unit.inputs, h),
      output(p, 1, attended, s.projected ? 1 : 0, width);
  const BothStates initial(p, unit.states, s.batch * h), states(p, unit.states, n * h),
      middle(p, unit.states, kept * h), dinitial(p, unit.states, s.batch * h);
  const auto contexts = p.floats(n * width), weights = p.floats(n * heads * source),
             queries = p.floats(kept * space), rearranged = p.floats(kept * width),
             xc = p.floats(kept * wide), xc_normal = p.floats(kept * wide),
             xc_rstd = p.floats(kept * unit.inputs);
  const Maybe headed(p, s.projected ? kept * attended : 0),
      doutputs(p, s.projected ? n * width : 0);
  const auto dh = p.floats(n * h), dcontexts = p.floats(n * width), dqueries = p.floats(n * space),
             dkeys = p.floats(source * sentences * space),
             dmemory = p.floats(source * sentences * attended), dv = p.floats(space),
             dgain = p.floats(wide), dnorm_bias = p.floats(wide);
  std::vector<std::int32_t> some_offsets{0}, some_sources;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int32_t length = some_lengths[static_cast<std::size_t>(row % sentences)];
    for (std::int32_t i = 0; i < row % 4 && i < length; ++i)  // others in each step
      some_sources.push_back(static_cast<std::int32_t>((row + i) % length));
    some_offsets.push_back(static_cast<std::int32_t>(some_sources.size()));
  }
  const auto offsets = p.integers(some_offsets), sources = p.integers(some_sources);
  const auto arguments = [&](const auto& on) {
    query.pack(on);
    context.pack(on);
    output.pack(on);
    Conditional a;
    a.lower = lower.cell(on);
    a.higher = higher.cell(on);
    a.attention = {.kind = s.kind,
                   .steps = source,
                   .sentences = sentences,
                   .space = space,
                   .width = attended,
                   .heads = heads,
                   .keys = keys(on),
                   .exp_keys = exp_keys.data(),
                   .memory = memory(on),
                   .lengths = lengths(on),
                   .v = v(on)};
    if (s.guided) a.attention.links = {offsets(on), sources(on), heads - 1, 0.75f};
    a.steps = s.steps;
    a.batch = s.batch;
    a.keep = s.backward;
    a.x = x(on);
    a.sentence = s.backward ? nullptr : sentence(on);
    a.query = query.forward(on);
    a.output = output.forward(on);
    a.output_transposed = output.backward(on);
    a.output_width = s.projected ? width : 0;
    a.headed = headed(on);
    a.context = context.forward(on);
    a.context_bias = normal ? nullptr : bias(on);
    a.context_gain = normal ? gain(on) : nullptr;
    a.context_norm_bias = normal ? norm_bias(on) : nullptr;
    a.query_transposed = query.backward(on);
    a.context_transposed = context.backward(on);
    initial.set(on, a.initial);
    states.set(on, a.states);
    middle.set(on, a.middle);
    a.contexts = contexts(on);
    a.weights = weights(on);
    a.queries = queries(on);
    a.contexts_rearranged = rearranged(on);
    a.xc = xc(on);
    a.xc_normal = xc_normal(on);
    a.xc_rstd = xc_rstd(on);
    a.lower_record = lower.record(on);
    a.higher_record = higher.record(on);
    return a;
  };
  const auto scratch =
      p.scratch_of([&](const auto& on) { return conditional_scratch(on, arguments(on)); });
  p.run(
      [&](const auto& on) {
        const Conditional a = arguments(on);
        conditional_forward(on, a);
        if (!s.backward) return;
        ConditionalGradient g;
        g.dh = dh(on);
        g.dcontexts = s.dcontexts ? dcontexts(on) : nullptr;
        dinitial.set(on, g.dinitial);
        g.lower = lower.gradient(on);
        g.higher = higher.gradient(on);
        g.dqueries = dqueries(on);
        g.doutputs = doutputs(on);
        g.dkeys = dkeys(on);
        g.dmemory = dmemory(on);
        g.writes_memory = !s.dcontexts;
        g.dv = dv(on);
        g.dcontext_gain = dgain(on);
        g.dcontext_norm_bias = dnorm_bias(on);
        g.scratch = scratch(on);
        conditional_backward(on, a, g);
      },
      recurrence_tolerance);
}

}  // namespace

std::vector<ParityRow> conditional_parity() {
  return {
      {"conditional",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) { check(p, c, {}); });
         check(p, {.unit = &units()[0], .width = 33},
               {.kind = AttentionKind::dot, .steps = 5, .dcontexts = false});
         check(p,
               {.unit = &units()[0], .width = 12, .groups = 3, .rearrange = true, .normal = true},
               {.steps = 1});
       }},
      {"conditional_projected",
       [](Parity& p) {
         check(p, {.unit = &units()[0], .width = 33}, {.projected = true});
         check(p, {.unit = &units()[0], .width = 33},
               {.kind = AttentionKind::dot, .dcontexts = false, .projected = true});
         for (const Unit& unit : units())
           if (unit.is_matrix())
             check(p, {.unit = &unit, .width = 12, .groups = 3, .rearrange = true, .normal = true},
                   {.projected = true});
         check(p, {.unit = &units()[0], .width = 33},
               {.batch = 5, .backward = false, .projected = true});
       }},
      {"conditional_guided",
       [](Parity& p) {
         check(p, {.unit = &units()[0], .width = 33}, {.guided = true});
         for (const Unit& unit : units())
           if (unit.is_matrix())
             check(p, {.unit = &unit, .width = 12, .normal = true},
                   {.kind = AttentionKind::dot, .steps = 5, .projected = true, .guided = true});
       }},
      {"conditional_decoding",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) { check(p, c, {.batch = 5, .backward = false}); });
       }},
  };
}

}  // namespace nmt::test
