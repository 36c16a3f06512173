#include "eval/bleu.h"

#include "core/error.h"
#include "eval/bleu_formula.h"
#include "text/unicode.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

namespace nmt {
namespace {

using Counter = std::unordered_map<std::string, std::int64_t>;

std::string lowered(std::string text, BleuTokenizer tokenizer) {
  if (tokenizer != BleuTokenizer::multi_bleu) return encode_utf8(lowercase_of(decode_utf8(text)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');  // as Perl's lc on bytes
  return text;
}

// Counts the n-grams of one order, joined by a character that no word contains.
Counter ngrams(const std::vector<std::string>& words, std::size_t order) {
  Counter counts;
  for (std::size_t i = 0; i + order <= words.size(); ++i) {
    std::string key;
    for (std::size_t j = i; j < i + order; ++j) (key += words[j]) += ' ';
    ++counts[key];
  }
  return counts;
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

BleuCounts bleu_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                       const BleuOptions& options) {
  NMT_CHECK(!references.empty(), "BLEU: expected at least one reference");
  const auto words_of = [&](const std::string& line) {
    const std::string text = options.lowercase ? lowered(line, options.tokenizer) : line;
    return tokenize(options.tokenizer, without_trailing_space(text));
  };
  const std::vector<std::string> words = words_of(hypothesis);
  std::vector<std::vector<std::string>> others;
  for (const std::string& reference : references) others.push_back(words_of(reference));
  BleuCounts counts;
  const auto length = static_cast<std::int64_t>(words.size());
  counts.hypothesis_length = length;
  std::int64_t closest = -1;
  for (const auto& other : others) {  // the closest in length; the shorter one for ties
    const auto candidate = static_cast<std::int64_t>(other.size());
    const std::int64_t distance = std::abs(candidate - length), best = std::abs(closest - length);
    if (closest < 0 || distance < best || (distance == best && candidate < closest))
      closest = candidate;
  }
  counts.reference_length = closest;
  for (int n = 1; n <= bleu_order; ++n) {
    const Counter mine = ngrams(words, n);
    Counter max_counts;  // maximum count of each n-gram over the references
    for (const auto& other : others)
      for (const auto& [key, count] : ngrams(other, n))
        max_counts[key] = std::max(max_counts[key], count);
    for (const auto& [key, count] : mine) {
      counts.total[n - 1] += count;
      if (const auto it = max_counts.find(key); it != max_counts.end())
        counts.correct[n - 1] += std::min(count, it->second);
    }
  }
  return counts;
}

BleuScore bleu_from_counts(const BleuCounts& counts, const BleuOptions& options) {
  BleuScore out;
  out.counts = counts;
  out.brevity_penalty = brevity_penalty(static_cast<double>(counts.hypothesis_length),
                                        static_cast<double>(counts.reference_length));
  std::array<double, bleu_order> correct{}, total{};
  std::copy(counts.correct.begin(), counts.correct.end(), correct.begin());
  std::copy(counts.total.begin(), counts.total.end(), total.begin());
  out.score = bleu_formula(correct, total, out.brevity_penalty, options, out.precisions);
  return out;
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::string>& references, const BleuOptions& options) {
  if (hypotheses.size() != references.size())
    fail(ExitStatus::data, "{} hypotheses for {} references", hypotheses.size(), references.size());
  BleuCounts sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    sum += bleu_counts(hypotheses[i], {references[i]}, options);
  return bleu_from_counts(sum, options);
}

double smoothing_value_of(const BleuOptions& options) {
  if (options.smoothing_value >= 0) return options.smoothing_value;
  return options.smoothing == BleuSmoothing::floor ? 0.1 : 1.0;
}

BleuOptions multi_bleu_options(bool lowercase) {
  BleuOptions options;
  options.tokenizer = BleuTokenizer::multi_bleu;
  options.smoothing = BleuSmoothing::none;
  options.lowercase = lowercase;
  return options;
}

std::string verbose(const BleuScore& score) {
  const auto& p = score.precisions;
  const double hypothesis = static_cast<double>(score.counts.hypothesis_length),
               reference = static_cast<double>(score.counts.reference_length);
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", p[0],
      p[1], p[2], p[3], score.brevity_penalty, reference > 0 ? hypothesis / reference : 0.0,
      score.counts.hypothesis_length, score.counts.reference_length);
}

std::string bleu_signature(const BleuOptions& options, int references, const std::string& trials) {
  std::string smooth(name_of(options.smoothing));
  if (options.smoothing == BleuSmoothing::floor || options.smoothing == BleuSmoothing::add_k)
    smooth += fmt::format("[{:.2f}]", smoothing_value_of(options));
  return fmt::format("nrefs:{}|{}case:{}|eff:{}|tok:{}|smooth:{}|version:nmt-{}", references,
                     trials, options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", name_of(options.tokenizer), smooth,
                     NMT_VERSION);
}

}  // namespace nmt
