#include "kernels/recurrent/conditional.h"

#include "kernels/layer_norm.h"
#include "tests/cuda/recurrent/copies.h"

#include <string_view>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

struct ConditionalSizes {
  AttentionKind kind = AttentionKind::additive;
  std::int64_t steps = 3, batch = 3;
  bool dcontexts = true;      ///< the contexts have a gradient of their own
  bool backward = true;       ///< or decoding: several rows read one sentence
  bool projected = false;     ///< with an output projection
  bool guided = false;        ///< with links of the last head
  bool pending = false;       ///< the step normalizes the projections; with one step
  bool copies = false;        ///< copies rounded for products; CUDA only
  bool copies_sizes = false;  ///< sizes that allow them
  bool wide = false;          ///< heads so wide that threads do not share their columns
};

// On the CPU x is normalized before the step.
void set_pending(const Cpu& on, const Conditional& a, float* x, const float* gain,
                 const float* bias) {
  layer_norm(on, a.batch, a.lower.unit->inputs, a.lower.width, x, gain, bias, x, nullptr);
}
void set_pending(const Cuda&, Conditional& a, float* x, const float* gain, const float* bias) {
  a.x_norm = {x, gain, bias};
  a.x = nullptr;
}

/// use(arguments, gradient), functions of a backend, with buffers of these sizes.
template <class Use>
void with_buffers(Parity& p, const CellSizes& c, const ConditionalSizes& s, const Use& use) {
  const Unit& unit = *c.unit;
  p.sizes("{}; {} steps {} batch {} backward {} projected {}", c.text(),
          s.kind == AttentionKind::dot ? "dot" : "additive", s.steps, s.batch, s.backward,
          s.projected);
  const std::int64_t n = s.steps * s.batch, h = c.width, source = 7, heads = 2,
                     space = s.copies_sizes ? 16 : 10, wide = unit.inputs * h;
  const std::int64_t sentences = s.backward ? s.batch : 2, kept = s.backward ? n : s.batch,
                     width = (s.wide           ? 2064
                              : s.copies_sizes ? 16
                                               : 12) *
                             c.groups,
                     attended = !s.projected     ? width
                                : s.copies_sizes ? 24
                                                 : 14;
  const bool normal = c.normal;
  const BothCell lower(p, c, kept, s.batch), higher(p, c, kept, s.batch);
  const Projections x(p, n * wide, s.copies && unit.late == 0);
  const auto x_gain = p.floats(wide, 1.0f), x_bias = p.floats(wide);
  const auto keys = p.floats(source * sentences * space),
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
  const CellCopies of_lower(p, unit, n, h, s.copies, unit.late > 0),
      of_higher(p, unit, n, h, s.copies, true);
  const MaybeRounded of_states(p, s.copies ? n * h : 0), of_middle(p, s.copies ? kept * h : 0),
      of_attended(p, s.copies ? kept * attended : 0), of_dqueries(p, s.copies ? n * space : 0);
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
    a.x = x.plain(on);
    a.x_rounded = x.rounded(on);
    if (s.pending) set_pending(on, a, const_cast<float*>(a.x), x_gain(on), x_bias(on));
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
    a.states_rounded = of_states(on);
    a.middle_rounded = of_middle(on);
    a.attended_rounded = of_attended(on);
    a.lower_record = lower.record(on);
    a.higher_record = higher.record(on);
    of_lower.set(on, a.lower_record);
    of_higher.set(on, a.higher_record);
    return a;
  };
  const auto gradient = [&](const auto& on) {
    ConditionalGradient g;
    g.dh = dh(on);
    g.dcontexts = s.dcontexts ? dcontexts(on) : nullptr;
    dinitial.set(on, g.dinitial);
    g.lower = lower.gradient(on);
    g.higher = higher.gradient(on);
    of_lower.set(on, g.lower);
    of_higher.set(on, g.higher);
    g.dqueries = dqueries(on);
    g.dqueries_rounded = of_dqueries(on);
    g.doutputs = doutputs(on);
    g.dkeys = dkeys(on);
    g.dmemory = dmemory(on);
    g.writes_memory = !s.dcontexts;
    g.dv = dv(on);
    g.dcontext_gain = dgain(on);
    g.dcontext_norm_bias = dnorm_bias(on);
    return g;
  };
  use(arguments, gradient);
}

void check(Parity& p, const CellSizes& c, const ConditionalSizes& s) {
  with_buffers(p, c, s, [&](const auto& arguments, const auto& gradient) {
    const auto scratch = p.scratch_of(
        [&](const auto& on) { return s.backward ? conditional_scratch(on, arguments(on)) : 0; });
    p.run(
        [&](const auto& on) {
          const Conditional a = arguments(on);
          conditional_forward(on, a);
          if (!s.backward) return;
          ConditionalGradient g = gradient(on);
          g.scratch = scratch(on);
          conditional_backward(on, a, g);
        },
        recurrence_tolerance);
  });
}

/// The same bits with copies and without, on a device whose products read bfloat16.
void same_bits(Parity& p, const CellSizes& c, ConditionalSizes s) {
  s.copies_sizes = true;
  const auto run = [&] {
    p.rng() = Rng(7);
    CudaDevice device(p.device_index(), Precision::bfloat16);
    const Cuda on = device.handle();
    std::optional<Results> found;
    with_buffers(p, c, s, [&](const auto& arguments, const auto& gradient) {
      p.cuda().device->synchronize();
      const Conditional a = arguments(on);
      ConditionalGradient g = gradient(on);
      const auto scratch = p.scratch(0, conditional_scratch(on, a));
      g.scratch = scratch(on);
      conditional_forward(on, a);
      conditional_backward(on, a, g);
      const Unit& unit = *c.unit;
      const std::int64_t h = c.width, n = s.steps * s.batch, space = a.attention.space;
      const float* const attended = a.headed ? a.headed : a.contexts;
      found.emplace(on);
      found->add(unit, n, s.batch, h, a.states, g.dinitial);
      found->add_rounded("rounded states", n * h, a.states[0], a.states_rounded);
      found->add_rounded("rounded middle", n * h, a.middle[0], a.middle_rounded);
      found->add_rounded("attended", n * a.attention.width, attended, a.attended_rounded);
      found->add_rounded("dqueries", n * space, g.dqueries, g.dqueries_rounded);
      found->add("contexts", n * a.context_width(), a.contexts);
      found->add("dkeys", a.attention.steps * s.batch * space, g.dkeys);
      found->add("dmemory", a.attention.steps * s.batch * a.attention.width, g.dmemory);
      found->add("lower", unit, n, h, a.lower_record, g.lower);
      found->add("higher", unit, n, h, a.higher_record, g.higher);
    });
    return *found;
  };
  const Results plain = run();
  s.copies = true;
  plain.expect_equal(run(), 0, c.text());
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
           if (unit.has_recurrent_product())
             check(p, {.unit = &unit, .width = 12, .groups = 3, .rearrange = true, .normal = true},
                   {.projected = true});
         check(p, {.unit = &units()[0], .width = 33},
               {.batch = 5, .backward = false, .projected = true});
       }},
      {"conditional_guided",
       [](Parity& p) {
         check(p, {.unit = &units()[0], .width = 33}, {.guided = true});
         for (const Unit& unit : units())
           if (unit.has_recurrent_product())
             check(p, {.unit = &unit, .width = 12, .normal = true},
                   {.kind = AttentionKind::dot, .steps = 5, .projected = true, .guided = true});
       }},
      {"conditional_normalized",
       [](Parity& p) {
         for (const Unit& unit : units()) {
           if (unit.has_recurrent_product()) continue;  // in each_cell()
           check(p, {.unit = &unit, .width = 33, .normal = true}, {});
           check(p, {.unit = &unit, .width = 33, .normal = true}, {.batch = 5, .backward = false});
         }
         for (const Unit& unit : units())
           if (std::string_view(unit.name) == "sru")  // more channels than threads, and than kept
             for (const std::int64_t width : {520, 1030})
               for (const bool backward : {false, true})
                 check(p, {.unit = &unit, .width = width, .normal = true},
                       {.batch = 2, .backward = backward});
         each_cell([&](const CellSizes& c) {
           check(p, c, {.steps = 1, .batch = 5, .backward = false, .pending = true});
         });
       }},
      {"conditional_rounded",
       [](Parity& p) {
         for (const Unit& unit : units())
           for (const bool projected : {false, true})
             for (const bool normal : {false, true})
               same_bits(p, {.unit = &unit, .width = 24, .normal = normal},
                         {.projected = projected});
         same_bits(p, {.unit = &units()[0], .width = 24},
                   {.kind = AttentionKind::dot, .wide = true});
         same_bits(p, {.unit = &units()[0], .width = 1032, .normal = true}, {.batch = 2});
       }},
      {"conditional_decoding",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) { check(p, c, {.batch = 5, .backward = false}); });
       }},
  };
}

}  // namespace nmt::test
