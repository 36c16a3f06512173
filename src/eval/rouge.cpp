#include "eval/rouge.h"

#include "core/error.h"
#include "text/unicode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>

namespace nmt {
namespace {

using Tokens = std::vector<std::string>;

RougeScore score_of(std::int64_t matches, std::int64_t hypothesis, std::int64_t reference) {
  if (matches == 0) return {};
  RougeScore score;
  score.precision = static_cast<double>(matches) / static_cast<double>(hypothesis);
  score.recall = static_cast<double>(matches) / static_cast<double>(reference);
  score.f1 = 2 * score.precision * score.recall / (score.precision + score.recall);
  return score;
}

std::map<Tokens, std::int64_t> ngrams(const Tokens& tokens, std::size_t order) {
  std::map<Tokens, std::int64_t> counts;
  for (auto begin = tokens.begin(); tokens.end() - begin >= static_cast<std::ptrdiff_t>(order);
       ++begin)
    ++counts[Tokens(begin, begin + static_cast<std::ptrdiff_t>(order))];
  return counts;
}

RougeScore ngram_score(const Tokens& hypothesis, const Tokens& reference, std::size_t order) {
  const auto count = [order](const Tokens& tokens) {
    return static_cast<std::int64_t>(tokens.size() < order ? 0 : tokens.size() - order + 1);
  };
  const auto mine = ngrams(hypothesis, order), other = ngrams(reference, order);
  std::int64_t matches = 0;
  for (const auto& [key, times] : mine)
    if (const auto it = other.find(key); it != other.end()) matches += std::min(times, it->second);
  return score_of(matches, count(hypothesis), count(reference));
}

std::int64_t longest_common_subsequence(const Tokens& a, const Tokens& b) {
  std::unordered_map<std::string_view, std::int32_t> numbers;
  const auto numbered = [&](const Tokens& tokens) {
    std::vector<std::int32_t> of;
    of.reserve(tokens.size());
    for (const std::string& token : tokens)
      of.push_back(numbers.emplace(token, static_cast<std::int32_t>(numbers.size())).first->second);
    return of;
  };
  const std::vector<std::int32_t> first = numbered(a), second = numbered(b);
  std::vector<std::int32_t> lengths(b.size() + 1, 0);  // of the prefix of a and each prefix of b
  for (const std::int32_t token : first) {
    std::int32_t diagonal = 0;
    for (std::size_t j = 0; j < second.size(); ++j) {
      const std::int32_t above = lengths[j + 1];
      lengths[j + 1] = token == second[j] ? diagonal + 1 : std::max(above, lengths[j]);
      diagonal = above;
    }
  }
  return lengths.back();
}

// Row: precision, recall and F1 of the sentence in units of 2^-32, and 1.
class RougeMetric : public Metric {
 public:
  explicit RougeMetric(RougeType type) : type_(type) {}
  std::string name() const override {
    constexpr std::array<const char*, 3> names{"ROUGE-1", "ROUGE-2", "ROUGE-L"};
    return names[static_cast<std::size_t>(type_)];
  }
  std::string signature(int references, const std::string& trials) const override {
    return fmt::format("nrefs:{}|{}case:lc|tok:rouge-score|stem:no|version:nmt-{}", references,
                       trials, NMT_VERSION);
  }
  std::string verbose(const std::vector<std::int64_t>& sum) const override {
    return fmt::format("(P = {:.2f} R = {:.2f} F1 = {:.2f})", mean(sum, 0), mean(sum, 1),
                       mean(sum, 2));
  }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    const RougeScore score = rouge_score(type_, hypothesis, references);
    const auto fixed = [](double x) { return std::llround(x * unit); };
    return {fixed(score.precision), fixed(score.recall), fixed(score.f1), 1};
  }
  double score(const std::vector<std::int64_t>& sum) const override { return mean(sum, 2); }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    return {100 * static_cast<double>(sum[2]) / unit / static_cast<double>(sum[3]), false};
  }

 private:
  static constexpr double unit = 4294967296.0;  // 2^32: sums of 2^31 lines fit
  static double mean(const std::vector<std::int64_t>& sum, std::size_t column) {
    return 100 * (static_cast<double>(sum[column]) / unit) / static_cast<double>(sum[3]);
  }
  RougeType type_;
};

}  // namespace

std::vector<std::string> rouge_tokens(std::string_view line) {
  Tokens tokens;
  bool inside = false;
  for (const char32_t c : lowercase_of(decode_utf8(line))) {
    const bool counts = (c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9');
    if (counts && !inside) tokens.emplace_back();
    if (counts) tokens.back() += static_cast<char>(c);
    inside = counts;
  }
  return tokens;
}

RougeScore rouge_score(RougeType type, const std::string& hypothesis,
                       const std::vector<std::string>& references) {
  NMT_CHECK(!references.empty(), "ROUGE: expected at least one reference");
  const Tokens mine = rouge_tokens(hypothesis);
  RougeScore best;
  for (const std::string& reference : references) {
    const Tokens other = rouge_tokens(reference);
    RougeScore score;
    if (type == RougeType::rouge_l)
      score =
          score_of(longest_common_subsequence(mine, other), static_cast<std::int64_t>(mine.size()),
                   static_cast<std::int64_t>(other.size()));
    else
      score = ngram_score(mine, other, type == RougeType::rouge1 ? 1 : 2);
    if (score.f1 > best.f1) best = score;
  }
  return best;
}

std::unique_ptr<Metric> rouge_metric(RougeType type) {
  return std::make_unique<RougeMetric>(type);
}

}  // namespace nmt
