#include "kernels/decoding/beam.h"

#include "kernels/softmax_loss.h"
#include "tests/cuda/table.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr float impossible = -std::numeric_limits<float>::infinity();
constexpr std::int32_t eos = 2;

// Three sentences, of which the second is finished; the others continue in other rows, or all stay
// in the same rows.
struct Case {
  std::int32_t beam;
  int k;
  bool moves, closing, n_best;
  float wrong = 0;  // written into the last sentence's scores unless it is 0
};

std::vector<std::int32_t> sums_before(const std::vector<std::int32_t>& counts) {
  std::vector<std::int32_t> sums(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, sums.begin() + 1);
  return sums;
}

void steps(Parity& p, const Case& c) {
  p.sizes("beam {} k {} moves {} closing {} n-best {} wrong {}", c.beam, c.k, c.moves, c.closing,
          c.n_best, c.wrong);
  const std::int32_t finished = std::min(1, c.beam - 1);
  const std::vector<std::int32_t> from_slots{c.beam, c.beam, std::max(1, c.beam / 2)},
      to_slots = c.moves ? std::vector<std::int32_t>{c.beam - finished, 0, c.beam}
                         : std::vector<std::int32_t>{c.beam, c.beam, from_slots[2]},
      active = c.moves ? std::vector<std::int32_t>{0, 2} : std::vector<std::int32_t>{0, 1, 2};
  const auto rows = static_cast<std::int64_t>(
                 std::accumulate(from_slots.begin(), from_slots.end(), 0)),
             to_rows =
                 static_cast<std::int64_t>(std::accumulate(to_slots.begin(), to_slots.end(), 0));
  // Few different values, so that there are ties; a row is sorted and may end early. Some rows are
  // not live.
  std::vector<float> sums, logits, normalizers;
  std::vector<std::int32_t> tokens;
  for (std::int64_t row = 0; row < rows; ++row) {
    sums.push_back(row % 5 == 3 ? impossible : -0.5f * static_cast<float>(p.rng().below(3)));
    normalizers.push_back(static_cast<float>(p.rng().below(2)));
    std::vector<float> own;
    for (int i = 0; i < c.k; ++i) own.push_back(-0.5f * static_cast<float>(p.rng().below(6)));
    std::sort(own.rbegin(), own.rend());
    if (c.k > 2 && row % 4 == 1) own.back() = impossible;
    if (c.wrong != 0 && row + 1 == rows) own[0] = c.wrong, sums.back() = 0;
    logits.insert(logits.end(), own.begin(), own.end());
    for (const float logit : own)
      tokens.push_back(logit == impossible ? -1 : static_cast<std::int32_t>(2 + p.rng().below(5)));
  }
  std::vector<double> divisors;
  for (int i = 0; i < 9; ++i) divisors.push_back(0.5 + 0.3 * i);
  const auto from_first = p.integers(sums_before(from_slots)), from_count = p.integers(from_slots),
             to_first = p.integers(sums_before(to_slots)), to_count = p.integers(to_slots);
  const auto sums_in = p.values(sums, true), sums_out = p.floats(to_rows),
             all_logits = p.values(logits, true), eos_logits = p.floats(3 * rows),
             log_normalizers = p.values(normalizers, true);
  const auto all_tokens = p.integers(tokens), which = p.integers(active),
             parents = p.integers(to_rows, 9), next_tokens = p.integers(to_rows, 9);
  const auto length_divisors = p.doubles(divisors);
  const std::int32_t step = c.closing ? 5 : 3;
  // Compared as floats, since the bits of a NaN depend on the device.
  const auto state = p.values(
      std::vector<BeamSentence>{
          {5, step, c.beam, finished, -2.0f}, {5, step, 0, 1, -1.0f}, {7, step, 1, 0, 0.0f}},
      true);
  const auto history =
      p.values(std::vector<BeamNode>(static_cast<std::size_t>(2 * to_rows)), false);
  p.run(
      [&](const auto& on) {
        BeamStep s;
        s.beam = c.beam;
        s.eos = eos;
        s.n_best = c.n_best;
        s.sentences = static_cast<std::int64_t>(active.size());
        s.active = which(on);
        s.from = {from_first(on), from_count(on), sums_in(on)};
        s.to = {to_first(on), to_count(on), c.moves ? sums_out(on) : sums_in(on)};
        s.rows = to_rows;
        s.k = c.k;
        s.tokens = all_tokens(on);
        s.logits = all_logits(on);
        s.eos_logits = eos_logits(on);
        s.eos_stride = 3;
        s.log_normalizers = log_normalizers(on);
        s.length_divisors = length_divisors(on);
        s.state = state(on);
        s.parents = parents(on);
        s.next_tokens = next_tokens(on);
        s.period = 2;
        s.history = history(on);
        beam_step(on, s);
      },
      0);
}

void all_steps(Parity& p) {
  for (const std::int32_t beam : {1, 3, 31, 33, 257})
    for (const bool moves : {false, true})
      for (const bool closing : {false, true})
        for (const bool n_best : {false, true})
          steps(p, {beam, std::min(beam, 31), moves, closing, n_best});
}

// From the scores of all tokens: on CUDA by the lists of their parts.
void joined_steps(Parity& p) {
  for (const std::int32_t beam : {1, 4, 33})
    for (const std::int64_t vocabulary : {50, 2500}) {
      p.sizes("beam {} vocabulary {}", beam, vocabulary);
      const std::vector<std::int32_t> slots{beam, std::max(1, beam / 2)};
      const auto rows = static_cast<std::int64_t>(slots[0] + slots[1]);
      const int k = std::min(beam, 40);
      const auto first = p.integers(sums_before(slots)), count = p.integers(slots),
                 which = p.integers({0, 1}), parents = p.integers(rows, 9),
                 next_tokens = p.integers(rows, 9), tokens = p.integers(rows * k, 9);
      const auto sums = p.floats(rows, -3.0f), scores = p.floats(rows * vocabulary),
                 logits = p.floats(rows * k), normalizers = p.floats(rows),
                 keys = p.scratch(0, 2 * rows * row_parts(vocabulary) * k),
                 part_sums = p.scratch(0, 2 * rows * row_parts(vocabulary));
      const auto divisors = p.doubles(std::vector<double>(9, 1.0));
      const auto state = p.values(
          std::vector<BeamSentence>{{7, 3, beam, 0, 0.0f}, {7, 3, slots[1], 0, 0.0f}}, true);
      // As floats: the last bits of log_prob may differ; rows and tokens stand in the others too.
      const auto history = p.values(std::vector<BeamNode>(static_cast<std::size_t>(rows)), true);
      const auto make = [&](const auto& on) {
        BeamStep s;
        s.beam = beam;
        s.eos = eos;
        s.sentences = 2;
        s.active = which(on);
        s.from = s.to = {first(on), count(on), sums(on)};
        s.rows = rows;
        s.k = k;
        s.tokens = tokens(on);
        s.logits = logits(on);
        s.eos_logits = scores(on) + eos;
        s.eos_stride = vocabulary;
        s.log_normalizers = normalizers(on);
        s.length_divisors = divisors(on);
        s.state = state(on);
        s.parents = parents(on);
        s.next_tokens = next_tokens(on);
        s.history = history(on);
        return s;
      };
      const std::vector<std::int32_t> skip{0, 1};
      p.run(
          [&](const Cpu& on) {
            top_k(on, rows, vocabulary, scores(on), k, skip, logits(on), tokens(on));
            log_sum_exp(on, rows, vocabulary, scores(on), normalizers(on));
            beam_step(on, make(on));
          },
          [&](const Cuda& on) {
            auto* const lists = reinterpret_cast<std::uint64_t*>(keys(on));
            best_of_parts(on, rows, vocabulary, scores(on), k, skip, lists, part_sums(on));
            BeamStep s = make(on);
            s.joined = {{row_parts(vocabulary), k, lists, part_sums(on)},
                        tokens(on),
                        logits(on),
                        normalizers(on)};
            beam_step(on, s);
          },
          2e-6);
    }
}

void wrong_scores(Parity& p) {
  for (const std::int32_t beam : {3, 33})
    for (const float wrong : {NAN, std::numeric_limits<float>::infinity()})
      steps(p, {beam, 3, true, false, true, wrong});
}

}  // namespace

std::vector<ParityRow> beam_parity() {
  return {{"beam_step", all_steps},
          {"beam_step_wrong_scores", wrong_scores},
          {"beam_step_of_parts", joined_steps}};
}

}  // namespace nmt::test
