#include "tasks/classification/labeled_corpus.h"

#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <unordered_map>

namespace nmt {
namespace {

constexpr std::size_t batch_tokens = 4096;  // padded tokens of a batch without gradients

Batch batch_of(std::span<const Ids> texts, std::span<const std::int32_t> labels,
               std::span<const std::size_t> examples) {
  std::vector<const Ids*> chosen;
  std::vector<std::int32_t> of_texts;
  for (const std::size_t i : examples) {
    chosen.push_back(&texts[i]);
    if (!labels.empty()) of_texts.push_back(labels[i]);
  }
  return make_classification_batch(chosen, of_texts);
}

}  // namespace

std::vector<std::string> class_names(const Vocabulary& labels) {
  return words_of(labels);
}

Ids encode_text(const Vocabulary& vocabulary, std::string_view text, std::string_view second,
                std::size_t max_tokens, std::size_t* tokens) {
  Ids ids = vocabulary.encode(text);
  if (tokens) *tokens = ids.size();
  if (!second.empty()) {
    const Ids more = vocabulary.encode(second);
    if (tokens) *tokens += more.size() + 1;
    // Both texts are read, the first up to half of the limit if the second needs the rest.
    const std::size_t rest = max_tokens - std::min(max_tokens, more.size() + 1);
    if (ids.size() > rest) ids.resize(std::min(ids.size(), std::max(rest, max_tokens / 2)));
    ids.push_back(vocabulary.eos());
    ids.insert(ids.end(), more.begin(), more.end());
  }
  if (ids.size() > max_tokens) ids.resize(max_tokens);
  if (ids.empty()) ids.push_back(vocabulary.unk());
  return ids;
}

LabeledCorpus encode(std::span<const LabeledText> examples, const Vocabulary& vocabulary,
                     const std::vector<std::string>& names, std::size_t max_tokens) {
  std::unordered_map<std::string, std::int32_t> numbers;
  for (std::size_t i = 0; i < names.size(); ++i) numbers[names[i]] = static_cast<std::int32_t>(i);
  LabeledCorpus corpus;
  for (const LabeledText& example : examples) {
    std::size_t tokens = 0;
    corpus.texts.push_back(
        encode_text(vocabulary, example.text, example.second, max_tokens, &tokens));
    if (tokens > max_tokens) ++corpus.cropped;
    const auto known = numbers.find(example.label);
    corpus.labels.push_back(known == numbers.end() ? kernels::no_target : known->second);
  }
  return corpus;
}

ClassificationBatches::ClassificationBatches(const LabeledCorpus& corpus, const DataSpec& spec,
                                             const RankSlice& share)
    : ExampleBatches(sizes_of(corpus.texts), spec, share,
                     [&corpus](std::span<const std::size_t> examples) {
                       return batch_of(corpus.texts, corpus.labels, examples);
                     }) {}

std::vector<std::int32_t> classify_all(Classifier& classifier, std::span<const Ids> texts,
                                       const std::function<void()>& on_batch) {
  std::vector<std::int32_t> labels(texts.size());
  for (const auto& examples : longest_first(texts, batch_tokens)) {
    if (on_batch) on_batch();
    const std::vector<std::int32_t> found = classifier.classify(batch_of(texts, {}, examples));
    for (std::size_t i = 0; i < examples.size(); ++i) labels[examples[i]] = found[i];
  }
  return labels;
}

ClassificationResult evaluate(Classifier& classifier, const LabeledCorpus& corpus,
                              const std::function<void()>& on_batch) {
  ClassificationResult result;
  result.labels = classify_all(classifier, corpus.texts, on_batch);
  double sum = 0;
  for (const auto& examples : longest_first(corpus.texts, batch_tokens)) {
    if (on_batch) on_batch();
    sum += classifier.evaluate(batch_of(corpus.texts, corpus.labels, examples)).cross_entropy;
  }
  const auto known = std::count_if(corpus.labels.begin(), corpus.labels.end(),
                                   [](std::int32_t label) { return label >= 0; });
  result.cross_entropy = known == 0 ? 0 : sum / static_cast<double>(known);
  return result;
}

}  // namespace nmt
