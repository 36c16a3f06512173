#include "nmt/metrics.h"

#include "core/error.h"
#include "core/number_text.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/metric.h"
#include "eval/significance.h"
#include "eval/ter.h"
#include "eval/tokenize.h"
#include "text/utf8.h"

#include <memory>

namespace nmt {
namespace {

/// Sentences as nmt-bleu reads them from a file.
Sentences clean(const Sentences& lines) {
  Sentences result;
  result.reserve(lines.size());
  for (const std::string& line : lines) {
    std::string text;
    repair_utf8(line, text);
    result.emplace_back(without_trailing_space(text));
  }
  return result;
}

std::vector<Sentences> clean(const std::vector<Sentences>& streams) {
  if (streams.empty()) fail(ExitStatus::data, "metrics: no references");
  std::vector<Sentences> result;
  for (const Sentences& stream : streams) result.push_back(clean(stream));
  return result;
}

void check(const BleuOptions& options) {
  if (options.smoothing_value >= 0 && options.smoothing != BleuSmoothing::floor &&
      options.smoothing != BleuSmoothing::add_k)
    fail(ExitStatus::usage, "BLEU: smoothing_value {}: only floor and add-k take one, not {}",
         options.smoothing_value, name_of(options.smoothing));
}

void check(const ChrfOptions& options) {
  if (options.character_order < 1 || options.word_order < 0 ||
      options.character_order > chrf_orders || options.word_order > chrf_orders ||
      options.character_order + options.word_order > chrf_orders)
    fail(ExitStatus::usage,
         "chrF: {} character and {} word orders; at least 1 and 0, together at most {}",
         options.character_order, options.word_order, chrf_orders);
}

std::vector<std::int64_t> corpus_row(const Metric& metric, const Sentences& hypotheses,
                                     const std::vector<Sentences>& references) {
  return sentence_counts(metric, clean(hypotheses), clean(references)).sum();
}

std::vector<PairedResult> compare(const Metric& metric, const std::vector<Sentences>& systems,
                                  const std::vector<Sentences>& references, SignificanceTest test,
                                  int samples, std::uint64_t seed) {
  if (systems.empty()) fail(ExitStatus::data, "metrics: no system to compare");
  if (systems.size() == 1)
    fail(ExitStatus::usage, "metrics: one system; a comparison needs a baseline and others");
  if (samples < 2) fail(ExitStatus::usage, "metrics: {} samples; at least 2 are needed", samples);
  const std::vector<Sentences> streams = clean(references);
  std::vector<SentenceCounts> counts;
  for (const Sentences& system : systems)
    counts.push_back(sentence_counts(metric, clean(system), streams));
  return test == SignificanceTest::bootstrap ? paired_bootstrap(metric, counts, samples, seed)
                                             : paired_randomization(metric, counts, samples, seed);
}

}  // namespace

BleuScore bleu(const Sentences& hypotheses, const std::vector<Sentences>& references,
               const BleuOptions& options) {
  check(options);
  const std::vector<Sentences> streams = clean(references);
  const Sentences lines = clean(hypotheses);
  for (const Sentences& stream : streams)
    if (stream.size() != lines.size())
      fail(ExitStatus::data, "BLEU: {} and {}; the numbers must be equal",
           lines.size() == 1 ? "1 hypothesis" : fmt::format("{} hypotheses", lines.size()),
           counted(std::ssize(stream), "reference"));
  if (lines.empty()) fail(ExitStatus::data, "BLEU: no sentence to score");
  BleuCounts sum;
  std::vector<std::string> own(streams.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t k = 0; k < streams.size(); ++k) own[k] = streams[k][i];
    sum += bleu_counts(lines[i], own, options);
  }
  return bleu_from_counts(sum, options);
}

double chrf(const Sentences& hypotheses, const std::vector<Sentences>& references,
            const ChrfOptions& options) {
  check(options);
  const std::unique_ptr<Metric> metric = chrf_metric(options);
  return metric->score(corpus_row(*metric, hypotheses, references));
}

double ter(const Sentences& hypotheses, const std::vector<Sentences>& references,
           const TerOptions& options) {
  const std::unique_ptr<Metric> metric = ter_metric(options);
  return metric->score(corpus_row(*metric, hypotheses, references));
}

std::string signature(const TerOptions& options, int references) {
  return ter_signature(options, references);
}
std::string signature(const BleuOptions& options, int references) {
  check(options);
  return bleu_signature(options, references);
}
std::string signature(const ChrfOptions& options, int references) {
  check(options);
  return chrf_signature(options, references);
}

std::vector<PairedResult> compare_bleu(const std::vector<Sentences>& systems,
                                       const std::vector<Sentences>& references,
                                       const BleuOptions& options, SignificanceTest test,
                                       int samples, std::uint64_t seed) {
  check(options);
  return compare(*bleu_metric(options), systems, references, test, samples, seed);
}
std::vector<PairedResult> compare_chrf(const std::vector<Sentences>& systems,
                                       const std::vector<Sentences>& references,
                                       const ChrfOptions& options, SignificanceTest test,
                                       int samples, std::uint64_t seed) {
  check(options);
  return compare(*chrf_metric(options), systems, references, test, samples, seed);
}

}  // namespace nmt
