#include "eval/chrf.h"

#include "core/error.h"
#include "eval/chrf_formula.h"
#include "eval/tokenize.h"
#include "text/unicode.h"

#include <algorithm>
#include <unordered_map>

namespace nmt {
namespace {

using Counter = std::unordered_map<std::u32string, std::int64_t>;

std::u32string prepared(const std::string& line, const ChrfOptions& options) {
  const std::u32string text = decode_utf8(line);
  return options.lowercase ? lowercase_of(text) : text;
}

std::vector<std::u32string> words_of(const std::u32string& text) {
  std::vector<std::u32string> words;
  for (const std::string& word : split_words(encode_utf8(text))) words.push_back(decode_utf8(word));
  return words;
}

bool is_ascii_punctuation(char32_t c) {
  return c > 32 && c < 127 && is_punctuation(c);
}
bool is_mark(char32_t c) {
  return is_ascii_punctuation(c) || (c < 127 && is_symbol(c));
}

// Splits off punctuation at the end of a word, else at its beginning (Popovic's chrF++).
std::vector<std::u32string> separated(const std::vector<std::u32string>& words) {
  std::vector<std::u32string> out;
  for (const std::u32string& word : words) {
    if (word.size() > 1 && is_mark(word.back())) {
      out.push_back(word.substr(0, word.size() - 1));
      out.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && is_mark(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(word);
    }
  }
  return out;
}

std::vector<Counter> ngrams(const std::string& line, const ChrfOptions& options) {
  const std::u32string text = prepared(line, options);
  const std::vector<std::u32string> words = words_of(text);
  std::u32string characters;
  if (options.whitespace)
    characters = text;
  else
    for (const std::u32string& word : words) characters += word;
  std::vector<Counter> orders;
  for (int n = 1; n <= options.character_order; ++n) {
    Counter& counts = orders.emplace_back();
    for (std::size_t i = 0; i + n <= characters.size(); ++i) ++counts[characters.substr(i, n)];
  }
  const std::vector<std::u32string> tokens = separated(words);
  for (int n = 1; n <= options.word_order; ++n) {
    Counter& counts = orders.emplace_back();
    for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
      std::u32string key;
      for (std::size_t j = i; j < i + n; ++j) (key += tokens[j]) += U' ';
      ++counts[key];
    }
  }
  return orders;
}

}  // namespace

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  for (int n = 0; n < chrf_orders; ++n)
    for (int i = 0; i < 3; ++i) orders[n][i] += other.orders[n][i];
  return *this;
}

ChrfCounts chrf_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                       const ChrfOptions& options) {
  NMT_CHECK(options.character_order + options.word_order <= chrf_orders &&
                options.character_order > 0 && options.word_order >= 0,
            "chrF: expected 1 to {} orders, not {} of characters and {} of words", chrf_orders,
            options.character_order, options.word_order);
  const std::vector<Counter> mine = ngrams(hypothesis, options);
  ChrfCounts best;
  double best_score = -1;
  for (const std::string& reference : references) {
    const std::vector<Counter> other = ngrams(reference, options);
    ChrfCounts counts;
    for (std::size_t n = 0; n < mine.size(); ++n) {
      auto& [hypothesis_count, reference_count, match] = counts.orders[n];
      for (const auto& [key, count] : mine[n]) {
        if (!other[n].empty()) hypothesis_count += count;
        if (const auto it = other[n].find(key); it != other[n].end())
          match += std::min(count, it->second);
      }
      for (const auto& [key, count] : other[n]) reference_count += count;
    }
    const double score = chrf_from_counts(counts, options);
    if (score > best_score) {
      best_score = score;
      best = counts;
    }
  }
  return best;
}

double chrf_from_counts(const ChrfCounts& counts, const ChrfOptions& options) {
  std::vector<double> sums;
  for (int n = 0; n < options.character_order + options.word_order; ++n)
    sums.insert(sums.end(), counts.orders[n].begin(), counts.orders[n].end());
  bool nothing = false;
  return chrf_formula(sums, options, nothing);
}

double corpus_chrf(const std::vector<std::string>& hypotheses,
                   const std::vector<std::string>& references, const ChrfOptions& options) {
  if (hypotheses.size() != references.size())
    fail(ExitStatus::data, "{} hypotheses for {} references", hypotheses.size(), references.size());
  ChrfCounts sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    sum += chrf_counts(hypotheses[i], {references[i]}, options);
  return chrf_from_counts(sum, options);
}

std::string chrf_name(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta,
                     std::string(static_cast<std::size_t>(options.word_order), '+'));
}

std::string chrf_signature(const ChrfOptions& options, int references, const std::string& trials) {
  return fmt::format("nrefs:{}|{}case:{}|eff:yes|nc:{}|nw:{}|space:{}|version:nmt-{}", references,
                     trials, options.lowercase ? "lc" : "mixed", options.character_order,
                     options.word_order, options.whitespace ? "yes" : "no", NMT_VERSION);
}

}  // namespace nmt
