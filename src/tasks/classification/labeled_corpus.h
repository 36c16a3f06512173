#pragma once

#include "data/labeled_text.h"
#include "nmt/vocabulary.h"
#include "tasks/classification/classifier.h"
#include "tasks/example_batches.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// The names of a classifier's labels: the words of its target vocabulary, from id 3.
std::vector<std::string> class_names(const Vocabulary& labels);

/// Texts to classify are cropped to so many tokens; training texts to max-length.
constexpr std::size_t max_classified_tokens = 1000;

/// The ids of a text, or of a pair with </s> between the texts if there is a second one, cropped to
/// `max_tokens`; `tokens`, if given, is set to their number before. A text without tokens is <unk>.
Ids encode_text(const Vocabulary& vocabulary, std::string_view text, std::string_view second,
                std::size_t max_tokens, std::size_t* tokens = nullptr);

/// Texts as a classifier reads them.
struct LabeledCorpus {
  std::vector<Ids> texts;
  std::vector<std::int32_t> labels;  ///< from 0; kernels::no_target: unknown to the classifier
  std::int64_t cropped = 0;          ///< number of texts that had more tokens
};
LabeledCorpus encode(std::span<const LabeledText> examples, const Vocabulary& vocabulary,
                     const std::vector<std::string>& names, std::size_t max_tokens);

/// The training batches of a corpus, which must outlive them.
struct ClassificationBatches : ExampleBatches {
  ClassificationBatches(const LabeledCorpus& corpus, const DataSpec& spec, const RankSlice& share);
};

/// The labels of texts, in batches of similar length. `on_batch` is called before each batch.
std::vector<std::int32_t> classify_all(Classifier& classifier, std::span<const Ids> texts,
                                       const std::function<void()>& on_batch = {});
/// The mean loss per text in nats, and the labels.
struct ClassificationResult {
  double cross_entropy = 0;
  std::vector<std::int32_t> labels;
};
ClassificationResult evaluate(Classifier& classifier, const LabeledCorpus& corpus,
                              const std::function<void()>& on_batch = {});

}  // namespace nmt
