#include "nmt/eval/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "nmt/core/error.h"
#include "unicode.h"

namespace nmt {
namespace {

using Counter = std::unordered_map<std::string, std::int64_t>;

std::string lowered(const std::string& text) { return encode_utf8(lowercase_of(decode_utf8(text))); }

// n-grams of one order, joined by a character that no word holds.
Counter ngrams(const std::vector<std::string>& words, std::size_t order) {
  Counter counts;
  for (std::size_t i = 0; i + order <= words.size(); ++i) {
    std::string key;
    for (std::size_t j = i; j < i + order; ++j) (key += words[j]) += ' ';
    ++counts[key];
  }
  return counts;
}

const char* name_of(BleuSmoothing smoothing) {
  switch (smoothing) {
    case BleuSmoothing::exp: return "exp";
    case BleuSmoothing::floor: return "floor";
    case BleuSmoothing::add_k: return "add-k";
    case BleuSmoothing::none: return "none";
  }
  return "?";
}

double smoothing_value(const BleuOptions& options) {
  if (options.smoothing_value >= 0) return options.smoothing_value;
  return options.smoothing == BleuSmoothing::floor ? 0.1 : 1.0;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (int n = 0; n < bleu_order; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts bleu_counts(const std::string& hypothesis, const std::vector<std::string>& references, const BleuOptions& options) {
  NMT_CHECK(!references.empty(), "BLEU needs a reference");
  const auto words_of = [&](const std::string& line) { return tokenize(options.tokenizer, options.lowercase ? lowered(line) : line); };
  const std::vector<std::string> words = words_of(hypothesis);
  std::vector<std::vector<std::string>> others;
  for (const std::string& reference : references) others.push_back(words_of(reference));
  BleuCounts counts;
  const auto length = static_cast<std::int64_t>(words.size());
  counts.hypothesis_length = length;
  std::int64_t closest = -1;
  for (const auto& other : others) {  // the closest in length, the shorter of two as close
    const auto candidate = static_cast<std::int64_t>(other.size());
    const std::int64_t distance = std::abs(candidate - length), best = std::abs(closest - length);
    if (closest < 0 || distance < best || (distance == best && candidate < closest)) closest = candidate;
  }
  counts.reference_length = closest;
  for (int n = 1; n <= bleu_order; ++n) {
    const Counter mine = ngrams(words, n);
    Counter most;  // the largest count of each n-gram in any reference
    for (const auto& other : others)
      for (const auto& [key, count] : ngrams(other, n)) most[key] = std::max(most[key], count);
    for (const auto& [key, count] : mine) {
      counts.total[n - 1] += count;
      if (const auto it = most.find(key); it != most.end()) counts.correct[n - 1] += std::min(count, it->second);
    }
  }
  return counts;
}

BleuScore bleu_from_counts(const BleuCounts& counts, const BleuOptions& options) {
  BleuScore out;
  out.counts = counts;
  const auto hypothesis = static_cast<double>(counts.hypothesis_length), reference = static_cast<double>(counts.reference_length);
  out.brevity_penalty = 1.0;
  if (hypothesis < reference) out.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0.0;
  if (std::all_of(counts.correct.begin(), counts.correct.end(), [](std::int64_t c) { return c == 0; })) return out;
  double smoothed_zeros = 1;
  for (int n = 0; n < bleu_order; ++n) {
    double correct = static_cast<double>(counts.correct[n]), total = static_cast<double>(counts.total[n]);
    if (options.smoothing == BleuSmoothing::add_k && n > 0) {
      correct += smoothing_value(options);
      total += smoothing_value(options);
    }
    if (total == 0) break;
    if (correct == 0) {
      if (options.smoothing == BleuSmoothing::exp) {  // each zero counts half of the one before (mteval-v13a)
        smoothed_zeros *= 2;
        out.precisions[n] = 100.0 / (smoothed_zeros * total);
      } else if (options.smoothing == BleuSmoothing::floor) {
        out.precisions[n] = 100.0 * smoothing_value(options) / total;
      }
    } else {
      out.precisions[n] = 100.0 * correct / total;
    }
  }
  double sum = 0;
  for (const double precision : out.precisions) sum += precision == 0 ? -9999999999.0 : std::log(precision);
  out.score = out.brevity_penalty * std::exp(sum / bleu_order);
  return out;
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references, const BleuOptions& options) {
  if (hypotheses.size() != references.size())
    fail(ExitStatus::data, "{} hypotheses for {} references", hypotheses.size(), references.size());
  BleuCounts sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) sum += bleu_counts(hypotheses[i], {references[i]}, options);
  return bleu_from_counts(sum, options);
}

std::string bleu_signature(const BleuOptions& options, int references) {
  std::string smooth = name_of(options.smoothing);
  if (options.smoothing == BleuSmoothing::floor || options.smoothing == BleuSmoothing::add_k)
    smooth += fmt::format("[{:.2f}]", smoothing_value(options));
  return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:{}|version:nmt-{}", references, options.lowercase ? "lc" : "mixed",
                     nmt::name_of(options.tokenizer), smooth, NMT_VERSION);
}

}  // namespace nmt
