#include "eval/significance.h"

#include "core/error.h"
#include "eval/numpy_generator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nmt {
namespace {

// An array of scores, float32 if all of them are, as in numpy. Operations compute in double and
// round to the type of the array, which is exact for + - * / of floats (53 >= 2 * 24 + 2 bits).
struct Scores {
  std::vector<double> values;
  bool single = true;
  void add(const SampleScore& score) {
    values.push_back(score.value);
    single = single && score.single;
  }
  double round(double x) const { return single ? static_cast<double>(static_cast<float>(x)) : x; }
};

// numpy's sum of a contiguous array (pairwise_sum in loops_utils.h.src): eight accumulators for
// blocks of at most 128.
template <class Real>
Real pairwise_sum(const Real* x, std::size_t count) {
  if (count < 8) {
    Real sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += x[i];
    return sum;
  }
  if (count > 128) {
    const std::size_t half = count / 2 - count / 2 % 8;
    return pairwise_sum(x, half) + pairwise_sum(x + half, count - half);
  }
  Real part[8];
  std::copy_n(x, 8, part);
  std::size_t i = 8;
  for (; i + 8 <= count; i += 8)
    for (std::size_t j = 0; j < 8; ++j) part[j] += x[i + j];
  Real sum =
      ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < count; ++i) sum += x[i];
  return sum;
}

double numpy_mean(const Scores& scores) {
  const std::size_t count = scores.values.size();
  if (!scores.single) return pairwise_sum(scores.values.data(), count) / static_cast<double>(count);
  const std::vector<float> floats(scores.values.begin(), scores.values.end());
  return static_cast<double>(pairwise_sum(floats.data(), count) / static_cast<float>(count));
}

// statistics.mean sums exactly and rounds once; a compensated sum in long double gives the same
// result.
double exact_mean(const Scores& scores) {
  long double sum = 0, lost = 0;
  for (const double x : scores.values) {
    const long double next = sum + x;
    lost += std::fabs(sum) >= std::fabs(static_cast<long double>(x)) ? (sum - next) + x
                                                                     : (x - next) + sum;
    sum = next;
  }
  return scores.round(
      static_cast<double>((sum + lost) / static_cast<long double>(scores.values.size())));
}

double half_width(const Scores& sorted) {
  const std::size_t last = sorted.values.size() - 1, tail = sorted.values.size() / 40;
  return sorted.round(0.5 * sorted.round(sorted.values[last - tail] - sorted.values[tail]));
}

// Scores of each system on the same resamples.
std::vector<Scores> resample(const Metric& metric,
                             const std::vector<const SentenceCounts*>& systems, int samples,
                             std::uint64_t seed) {
  const std::size_t sentences = systems[0]->sentences;
  if (sentences > std::numeric_limits<std::uint32_t>::max())
    NMT_FAIL("{} sentences exceed the maximum for resampling", sentences);
  NumpyGenerator generator(seed);
  std::vector<Scores> scores(systems.size());
  std::vector<std::uint32_t> chosen(sentences);
  for (int trial = 0; trial < samples; ++trial) {
    for (std::uint32_t& i : chosen) i = generator.below(static_cast<std::uint32_t>(sentences));
    for (std::size_t s = 0; s < systems.size(); ++s) {
      const SentenceCounts& counts = *systems[s];
      std::vector<float> sum(counts.columns,
                             0.0F);  // row by row in float32, as numpy's sum over the first axis
      for (const std::uint32_t i : chosen)
        for (std::size_t c = 0; c < counts.columns; ++c)
          sum[c] += static_cast<float>(counts.values[i * counts.columns + c]);
      scores[s].add(metric.score_of_floats(sum));
    }
  }
  return scores;
}

void check(const std::vector<SentenceCounts>& systems, int trials) {
  NMT_CHECK(systems.size() > 1,
            "paired test: expected a baseline and at least one system, not {} systems",
            systems.size());
  NMT_CHECK(trials > 0, "paired test: expected at least 1 trial, not {}", trials);
  for (const SentenceCounts& counts : systems)
    NMT_CHECK(counts.sentences == systems[0].sentences && counts.columns == systems[0].columns,
              "systems have different numbers of sentences: {} and {}", systems[0].sentences,
              counts.sentences);
}

double p_value(std::int64_t above, int trials) {
  return static_cast<double>(above + 1) / static_cast<double>(trials + 1);
}

}  // namespace

Interval confidence_interval(const Metric& metric, const SentenceCounts& counts, int samples,
                             std::uint64_t seed) {
  NMT_CHECK(samples > 1, "confidence interval: expected at least 2 resamples, not {}", samples);
  Scores scores = std::move(resample(metric, {&counts}, samples, seed)[0]);
  std::sort(scores.values.begin(), scores.values.end());
  return {exact_mean(scores), half_width(scores)};
}

std::vector<PairedResult> paired_bootstrap(const Metric& metric,
                                           const std::vector<SentenceCounts>& systems, int samples,
                                           std::uint64_t seed) {
  check(systems, samples);
  std::vector<const SentenceCounts*> pointers;
  for (const SentenceCounts& counts : systems) pointers.push_back(&counts);
  const std::vector<Scores> scores = resample(metric, pointers, samples, seed);
  std::vector<PairedResult> results(systems.size());
  for (std::size_t s = 0; s < systems.size(); ++s) {
    PairedResult& result = results[s];
    result.score = metric.score(systems[s].sum());
    Scores sorted = scores[s];  // estimate_ci sorts before it sums, which affects the last digits
    std::sort(sorted.values.begin(), sorted.values.end());
    result.interval = {numpy_mean(sorted), half_width(sorted)};
    result.has_interval = true;
    if (s == 0) continue;
    Scores differences;
    differences.single = scores[0].single && scores[s].single;
    for (std::size_t i = 0; i < scores[s].values.size(); ++i)
      differences.values.push_back(
          differences.round(std::fabs(scores[s].values[i] - scores[0].values[i])));
    const double mean = numpy_mean(differences),
                 real = differences.round(std::fabs(results[0].score - result.score));
    result.p_value =
        p_value(std::count_if(differences.values.begin(), differences.values.end(),
                              [&](double x) { return differences.round(x - mean) > real; }),
                samples);
  }
  return results;
}

std::vector<PairedResult> paired_randomization(const Metric& metric,
                                               const std::vector<SentenceCounts>& systems,
                                               int trials, std::uint64_t seed) {
  check(systems, trials);
  const std::size_t columns = systems[0].columns;
  const std::vector<std::int64_t> baseline = systems[0].sum();
  std::vector<std::vector<std::int64_t>> both;  // baseline + system
  std::vector<PairedResult> results;
  for (const SentenceCounts& counts : systems) {
    const auto sum = counts.sum();
    results.push_back({metric.score(sum), -1, false, {}});
    both.push_back(sum);
    for (std::size_t c = 0; c < columns; ++c) both.back()[c] += baseline[c];
  }
  std::vector<std::int64_t> above(systems.size(), 0), first(columns), second(columns);
  NumpyGenerator generator(seed);
  std::vector<char> keeps(systems[0].sentences);
  for (int trial = 0; trial < trials; ++trial) {
    for (char& keep : keeps) keep = generator.bit();
    for (std::size_t s = 1; s < systems.size(); ++s) {
      std::fill(first.begin(), first.end(), 0);
      for (std::size_t i = 0; i < keeps.size(); ++i) {
        const std::int64_t* row = (keeps[i] ? systems[0] : systems[s]).values.data() + i * columns;
        for (std::size_t c = 0; c < columns; ++c) first[c] += row[c];
      }
      for (std::size_t c = 0; c < columns; ++c) second[c] = both[s][c] - first[c];
      const double difference =
          std::fabs(metric.score_of_integers(first) - metric.score_of_integers(second));
      above[s] += difference > std::fabs(results[0].score - results[s].score);
    }
  }
  for (std::size_t s = 1; s < systems.size(); ++s) results[s].p_value = p_value(above[s], trials);
  return results;
}

}  // namespace nmt
