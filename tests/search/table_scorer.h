#pragma once

#include "core/rng.h"
#include "model/step_scorer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

namespace nmt {

using Ids = std::vector<std::int32_t>;

/// A scorer without a model: logits and attention are functions of a source and a prefix (without
/// <s>). It counts its calls and records the number of rows of each.
class TableScorer : public StepScorer {
 public:
  using Logits = std::function<std::vector<float>(const Ids& source, const Ids& prefix)>;  // [V]
  using Attention =
      std::function<std::vector<float>(const Ids& source, const Ids& prefix)>;  // [source + 1]

  TableScorer(int vocabulary, Logits logits, Attention attention = {})
      : vocabulary_(vocabulary), logits_(std::move(logits)), attention_(std::move(attention)) {}

  using StepScorer::begin;
  int vocabulary() const override { return vocabulary_; }

  std::unique_ptr<Decoding> begin(std::span<const Ids> sources, bool want_attention) override {
    ++begins;
    for (const Ids& source : sources) encoded.push_back(source);
    return std::make_unique<Table>(*this, sources, want_attention);
  }

  /// log of the sum of e^logit, in double.
  static double log_normalizer(const std::vector<float>& logits) {
    double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
    for (const float logit : logits) sum += std::exp(logit - most);
    return most + std::log(sum);
  }

  int begins = 0;
  std::vector<Ids> encoded;
  std::vector<int> rows_of_steps;
  const Context* device = nullptr;  ///< device of the search; its memory must be the host's

 private:
  struct Table : Decoding {
    Table(TableScorer& owner_, std::span<const Ids> sources_, bool want)
        : owner(owner_), sources(sources_.begin(), sources_.end()), want_attention(want) {
      for (std::size_t i = 0; i < sources.size(); ++i) sentence.push_back(static_cast<int>(i));
      prefixes.resize(sources.size());
    }

    DecodingStep advance(std::span<const std::int32_t> parents,
                         std::span<const std::int32_t> tokens) override {
      std::vector<Ids> next_prefixes;
      std::vector<int> next_sentence;
      for (std::size_t i = 0; i < parents.size(); ++i) {
        Ids prefix = prefixes.at(parents[i]);
        if (!first) prefix.push_back(tokens[i]);
        next_prefixes.push_back(std::move(prefix));
        next_sentence.push_back(sentence.at(parents[i]));
      }
      first = false;
      prefixes = std::move(next_prefixes);
      sentence = std::move(next_sentence);
      owner.rows_of_steps.push_back(static_cast<int>(prefixes.size()));
      std::size_t steps = 0;
      for (const Ids& source : sources) steps = std::max(steps, source.size() + 1);
      logits.clear();
      normalizers.clear();
      attention.assign(want_attention ? prefixes.size() * steps : 0, 0.0f);
      for (std::size_t i = 0; i < prefixes.size(); ++i) {
        const std::vector<float> row = owner.logits_(sources[sentence[i]], prefixes[i]);
        logits.insert(logits.end(), row.begin(), row.end());
        normalizers.push_back(static_cast<float>(log_normalizer(row)));
        if (!want_attention) continue;
        const std::vector<float> weights = owner.attention_(sources[sentence[i]], prefixes[i]);
        std::copy(weights.begin(), weights.end(),
                  attention.begin() + static_cast<std::ptrdiff_t>(i * steps));
      }
      return {static_cast<int>(prefixes.size()), 3, want_attention ? attention.data() : nullptr,
              static_cast<int>(steps)};
    }

    const Context* device() const override { return owner.device; }

    DecodingStep advance_on_device(const RowsOnDevice& rows) override {
      const auto ids = [](const Tensor& t) {
        return std::span(t.data<std::int32_t>(), static_cast<std::size_t>(t.elements()));
      };
      DecodingStep step = advance(ids(rows.parents), ids(rows.tokens));
      const auto named = ids(rows.sentences);
      if (!std::equal(sentence.begin(), sentence.end(), named.begin(), named.end()))
        NMT_FAIL("rows belong to other sentences");
      return step;
    }

    NextTokens score(int from, int count) override {
      return {count, owner.vocabulary_, logits.data() + std::ptrdiff_t{from} * owner.vocabulary_,
              normalizers.data() + from, owner.device};
    }

    TableScorer& owner;
    std::vector<Ids> sources;
    bool want_attention;
    bool first = true;
    std::vector<Ids> prefixes;
    std::vector<int> sentence;
    std::vector<float> logits, normalizers, attention;
  };

  int vocabulary_;
  Logits logits_;
  Attention attention_;
};

/// Pseudo-random numbers determined by the source and the prefix.
inline Rng rng_of(const Ids& source, const Ids& prefix, std::uint64_t stream) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const Ids* ids : {&source, &prefix}) {
    for (const std::int32_t id : *ids)
      hash = (hash ^ static_cast<std::uint64_t>(id + 1)) * 1099511628211ull;
    hash = (hash ^ 0xFFFFu) * 1099511628211ull;
  }
  return Rng(hash, stream);
}

inline TableScorer random_scorer(int vocabulary, double eos_bonus = 0.0) {
  return TableScorer(
      vocabulary,
      [=](const Ids& source, const Ids& prefix) {
        Rng rng = rng_of(source, prefix, 0);
        std::vector<float> logits(vocabulary);
        for (float& logit : logits) logit = 1.5f * rng.normal();
        logits[2] += static_cast<float>(eos_bonus);
        return logits;
      },
      [](const Ids& source, const Ids& prefix) {
        Rng rng = rng_of(source, prefix, 1);
        std::vector<float> weights(source.size() + 1);
        float sum = 0;
        for (float& weight : weights) sum += weight = std::exp(2.0f * rng.normal());
        for (float& weight : weights) weight /= sum;
        return weights;
      });
}

}  // namespace nmt
