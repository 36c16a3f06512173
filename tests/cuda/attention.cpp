#include "kernels/attention.h"

#include "kernels/products/product_input.h"
#include "tests/cuda/table.h"

#include <cmath>
#include <optional>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr double tolerance = 2e-5;

struct AttentionSizes {
  AttentionKind kind;
  std::int64_t steps, source, sentences, heads, space, width;  ///< space and width of a head
};

/// Lengths 1 to `source` in turn, starting from `first`; no sentence needs to have the full length.
std::vector<std::int32_t> lengths(const AttentionSizes& s, std::int64_t first) {
  std::vector<std::int32_t> some;
  for (std::int64_t b = 0; b < s.sentences; ++b)
    some.push_back(static_cast<std::int32_t>((first + b) % s.source + 1));
  return some;
}

/// Values small enough not to saturate the softmax: in a saturated one the gradients are
/// differences of equal numbers.
std::vector<float> score_vector(Parity& p, const AttentionSizes& s) {
  std::vector<float> v(static_cast<std::size_t>(s.heads * s.space));
  for (float& x : v) x = (2 * p.rng().uniform() - 1) / std::sqrt(static_cast<float>(s.space));
  return v;
}

class BothAttention {
 public:
  /// rounded: CUDA reads keys and memory in bfloat16.
  BothAttention(Parity& p, const AttentionSizes& s, std::int64_t first_length, bool rounded)
      : sizes_(s),
        rounded_(rounded),
        keys_count_(s.source * s.sentences * s.heads * s.space),
        memory_count_(s.source * s.sentences * s.heads * s.width),
        keys_(p.values(bfloat16_numbers(p, keys_count_), true)),
        memory_(p.values(bfloat16_numbers(p, memory_count_), true)),
        keys_copy_(p.scratch(0, keys_count_ + 8)),
        memory_copy_(p.scratch(0, memory_count_ + 8)),
        v_(p.values(score_vector(p, s), true)),
        lengths_(p.integers(lengths(s, first_length))),
        exp_keys_(static_cast<std::size_t>(s.source * s.sentences * s.heads * s.space)) {
    attention_exp_keys(p.cpu(), static_cast<std::int64_t>(exp_keys_.size()), keys_(p.cpu()),
                       exp_keys_.data());
  }
  Attention operator()(const Cpu& on) const { return view(on); }
  Attention operator()(const Cuda& on) const {
    Attention a = view(on);
    if (!rounded_) return a;
    const auto copy = [&](std::int64_t n, const Both<float>& from, const Both<float>& to) {
      auto* const rounded = reinterpret_cast<Bfloat16*>(to(on));
      round_matrix(on, 1, n, from(on), rounded);
      return rounded;
    };
    a.keys_rounded = copy(keys_count_, keys_, keys_copy_);
    a.memory_rounded = copy(memory_count_, memory_, memory_copy_);
    a.keys = a.memory = nullptr;
    return a;
  }

 private:
  static std::vector<float> bfloat16_numbers(Parity& p, std::int64_t n) {
    std::vector<float> all(static_cast<std::size_t>(n));
    for (float& x : all) x = from_bf16(to_bf16(2 * p.rng().uniform() - 1));
    return all;
  }
  template <class Backend>
  Attention view(const Backend& on) const {
    return {.kind = sizes_.kind,
            .steps = sizes_.source,
            .sentences = sizes_.sentences,
            .space = sizes_.heads * sizes_.space,
            .width = sizes_.heads * sizes_.width,
            .heads = sizes_.heads,
            .keys = keys_(on),
            .exp_keys = exp_keys_.data(),  // for the CPU alone
            .memory = memory_(on),
            .lengths = lengths_(on),
            .v = sizes_.kind == AttentionKind::additive ? v_(on) : nullptr,
            .keys_rounded = nullptr,
            .memory_rounded = nullptr};
  }

  AttentionSizes sizes_;
  bool rounded_;
  std::int64_t keys_count_, memory_count_;
  Both<float> keys_, memory_, keys_copy_, memory_copy_, v_;
  Both<std::int32_t> lengths_;
  std::vector<float> exp_keys_;
};

void name_sizes(Parity& p, const AttentionSizes& s, std::int64_t first_length) {
  p.sizes(
      "{}: {} target steps, {} source steps, {} sentences from length {}, {} heads of {} and {}",
      s.kind == AttentionKind::dot ? "dot" : "additive", s.steps, s.source, s.sentences,
      first_length + 1, s.heads, s.space, s.width);
}

/// rows > 0: the number of hypotheses, which read the sentences in turn.
void forward(Parity& p, const AttentionSizes& s, std::int64_t first_length, std::int64_t rows = 0,
             bool rounded = false) {
  name_sizes(p, s, first_length);
  const BothAttention attention(p, s, first_length, rounded);
  std::vector<std::int32_t> some_rows;
  for (std::int64_t r = 0; r < rows; ++r)
    some_rows.push_back(static_cast<std::int32_t>((s.sentences - 1 + 2 * r) % s.sentences));
  const auto sentence = p.integers(some_rows);
  const std::int64_t all = rows > 0 ? rows : s.sentences, n = s.steps * all * s.heads;
  const auto query = p.floats(n * s.space), weights = p.floats(n * s.source),
             context = p.floats(n * s.width);
  p.run(
      [&](const auto& on) {
        attention_forward(on, attention(on), s.steps, all, rows > 0 ? sentence(on) : nullptr,
                          query(on), weights(on), context(on));
      },
      tolerance);
}

/// Links of two rows in three, at up to two positions.
struct BothLinks {
  BothLinks(Parity& p, const AttentionSizes& s, std::int64_t first_length)
      : head(static_cast<std::int32_t>(s.heads - 1)) {
    std::vector<std::int32_t> some_offsets{0}, some_sources;
    const std::vector<std::int32_t> length = lengths(s, first_length);
    for (std::int64_t row = 0; row < s.steps * s.sentences; ++row) {
      const auto n = length[static_cast<std::size_t>(row % s.sentences)];
      if (row % 3 != 1) some_sources.push_back(static_cast<std::int32_t>(row % n));
      if (row % 3 == 2 && n > 1) some_sources.push_back(static_cast<std::int32_t>((row + 1) % n));
      some_offsets.push_back(static_cast<std::int32_t>(some_sources.size()));
    }
    offsets.emplace(p.integers(some_offsets));
    sources.emplace(p.integers(some_sources));
  }
  template <class Backend>
  AttentionLinks operator()(const Backend& on) const {
    return {(*offsets)(on), (*sources)(on), head, 0.75f};
  }
  std::int32_t head;
  std::optional<Both<std::int32_t>> offsets, sources;
};

void backward(Parity& p, const AttentionSizes& s, std::int64_t first_length, bool rounded = false,
              bool guided = false) {
  name_sizes(p, s, first_length);
  std::optional<BothLinks> links;
  if (guided) links.emplace(p, s, first_length);
  const BothAttention attention(p, s, first_length, rounded);
  const std::int64_t n = s.steps * s.sentences * s.heads,
                     positions = s.source * s.sentences * s.heads;
  const auto query = p.floats(n * s.space), weights = p.floats(n * s.source),
             context = p.floats(n * s.width), dcontext = p.floats(n * s.width),
             dquery = p.floats(n * s.space), dkeys = p.floats(positions * s.space),
             dmemory = p.floats(positions * s.width), dv = p.floats(s.heads * s.space);
  const auto scratch =
      p.scratch_of([&](const auto& on) { return attention_scratch(on, attention(on), s.steps); });
  p.run(
      [&](const auto& on) {
        Attention a = attention(on);
        if (links) a.links = (*links)(on);
        attention_forward(on, a, s.steps, s.sentences, nullptr, query(on), weights(on),
                          context(on));
        attention_backward(on, a, s.steps, query(on), weights(on),
                           {.dcontext = dcontext(on),
                            .dquery = dquery(on),
                            .dkeys = dkeys(on),
                            .dmemory = dmemory(on),
                            .dv = dv(on),
                            .scratch = scratch(on)});
      },
      tolerance);
}

void link_cost(Parity& p, const AttentionSizes& s) {
  name_sizes(p, s, 0);
  const BothLinks links(p, s, 0);
  const std::int64_t rows = s.steps * s.sentences;
  std::vector<float> some_weights(static_cast<std::size_t>(rows * s.heads * s.source));
  for (float& x : some_weights) x = p.rng().uniform() + 1e-3f;
  some_weights.back() = 0.0f;  // the logarithm of the smallest normal float
  const auto weights = p.values(some_weights, true);
  const auto scratch = p.values(std::vector<double>(static_cast<std::size_t>(rows)), true),
             sum = p.values(std::vector<double>{1.5}, true);
  p.run(
      [&](const auto& on) {
        attention_link_cost(on, links(on), rows, s.heads, s.source, weights(on), scratch(on),
                            sum(on));
      },
      1e-6);
}

/// Both kinds; all odd sizes as lengths, as widths and as numbers of steps and sentences.
template <class Body>
void each_size(Body&& body) {
  for (const AttentionKind kind : {AttentionKind::additive, AttentionKind::dot}) {
    body({kind, 1, 1, 1, 1, 1, 1}, 0);
    for (const std::int64_t source : odd_sizes) body({kind, 3, source, 3, 2, 5, 3}, source - 1);
    for (const std::int64_t n : odd_sizes) body({kind, 1, 7, 2, 1, n, 260 - n}, 6);
    for (const std::int64_t n : {4, 32, 260})
      body({kind, 5, 9, 2, 3, n, 264 - n}, 7);  // four floats at a time
    body({kind, 33, 4, 3, 2, 8, 4}, 1);
    body({kind, 1, 33, 33, 3, 3, 4}, 0);  // every length
    body({kind, 2, 31, 31, 1, 4, 8}, 0);
  }
}

}  // namespace

std::vector<ParityRow> attention_parity() {
  return {
      {"attention_forward",
       [](Parity& p) {
         each_size([&](const AttentionSizes& s, std::int64_t first_length) {
           forward(p, s, first_length);
         });
         for (const AttentionKind kind : {AttentionKind::additive, AttentionKind::dot}) {
           forward(p, {kind, 1, 33, 3, 2, 5, 8}, 30, 7);  // a beam's rows
           forward(p, {kind, 2, 3, 4, 1, 4, 4}, 1, 31);
         }
         forward(p, {AttentionKind::additive, 3, 3, 2, 1, 1200, 600},
                 1);  // more columns than threads
       }},
      {"attention_backward",
       [](Parity& p) {
         each_size([&](const AttentionSizes& s, std::int64_t first_length) {
           backward(p, s, first_length);
         });
         backward(p, {AttentionKind::additive, 3, 3, 2, 1, 600, 2100}, 1);
       }},
      {"guided_attention",
       [](Parity& p) {
         each_size([&](const AttentionSizes& s, std::int64_t first_length) {
           backward(p, s, first_length, false, true);
           backward(p, s, first_length, true, true);
         });
       }},
      {"attention_link_cost",
       [](Parity& p) {
         for (const std::int64_t n : odd_sizes)
           link_cost(p, {AttentionKind::dot, n, 5, 3, 2, 1, 1});
       }},
      {"attention_of_bfloat16",
       [](Parity& p) {
         each_size([&](const AttentionSizes& s, std::int64_t first_length) {
           forward(p, s, first_length, 0, true);
           backward(p, s, first_length, true);
         });
       }},
  };
}

}  // namespace nmt::test
