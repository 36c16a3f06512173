#include "tasks/tagging/tagged_corpus.h"

#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace nmt {
namespace {

constexpr std::size_t batch_words = 2048;  // padded words of a batch without gradients

std::vector<const Ids*> chosen(std::span<const Ids> from, std::span<const std::size_t> examples) {
  std::vector<const Ids*> sentences;
  for (const std::size_t i : examples) sentences.push_back(&from[i]);
  return sentences;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) (line += line.empty() ? "" : " ") += word;
  return line;
}

}  // namespace

std::vector<std::string> label_names(const Vocabulary& labels) {
  return words_of(labels);
}

TaggedCorpus encode(std::span<const TaggedSentence> sentences, const Vocabulary& labels,
                    WordForms& forms) {
  std::unordered_map<std::string, std::int32_t> numbers;
  const std::vector<std::string> names = label_names(labels);
  for (std::size_t i = 0; i < names.size(); ++i) numbers[names[i]] = static_cast<std::int32_t>(i);
  TaggedCorpus corpus;
  for (const TaggedSentence& sentence : sentences) {
    corpus.words.push_back(forms.add(sentence.words));
    Ids& ids = corpus.labels.emplace_back();
    for (const std::string& tag : sentence.tags) {
      const auto known = numbers.find(tag);
      ids.push_back(known == numbers.end() ? kernels::no_target : known->second);
    }
  }
  return corpus;
}

TaggingBatches::TaggingBatches(const TaggedCorpus& corpus, const DataSpec& spec,
                               const RankSlice& share)
    : ExampleBatches(sizes_of(corpus.words), spec, share,
                     [&corpus](std::span<const std::size_t> examples) {
                       return make_tagging_batch(chosen(corpus.words, examples),
                                                 chosen(corpus.labels, examples));
                     }) {}

std::vector<Ids> tag_all(Tagger& tagger, std::span<const Ids> sentences,
                         const std::function<void()>& on_batch) {
  std::vector<Ids> labels(sentences.size());
  for (const auto& examples : longest_first(sentences, batch_words)) {
    if (on_batch) on_batch();
    std::vector<Ids> tagged = tagger.tag(make_tagging_batch(chosen(sentences, examples), {}));
    for (std::size_t i = 0; i < examples.size(); ++i) labels[examples[i]] = std::move(tagged[i]);
  }
  return labels;
}

TaggingResult evaluate(Tagger& tagger, const TaggedCorpus& corpus,
                       const std::function<void()>& on_batch) {
  TaggingResult result;
  result.labels = tag_all(tagger, corpus.words, on_batch);
  double sum = 0;
  std::int64_t labels = 0;
  // A CRF has no score of a sentence with a label that it does not have.
  std::vector<Ids> words, known;
  for (std::size_t i = 0; i < corpus.words.size(); ++i) {
    const Ids& of_sentence = corpus.labels[i];
    if (std::find(of_sentence.begin(), of_sentence.end(), kernels::no_target) != of_sentence.end())
      continue;
    words.push_back(corpus.words[i]);
    known.push_back(of_sentence);
  }
  for (const auto& examples : longest_first(words, batch_words)) {
    if (on_batch) on_batch();
    const BatchLoss loss =
        tagger.evaluate(make_tagging_batch(chosen(words, examples), chosen(known, examples)));
    sum += loss.cross_entropy;
    labels += loss.tokens;
  }
  result.cross_entropy = labels == 0 ? 0 : sum / static_cast<double>(labels);
  return result;
}

std::vector<std::string> label_lines(std::span<const Ids> labels,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  for (const Ids& sentence : labels) {
    std::vector<std::string> words;
    for (const std::int32_t label : sentence)
      words.push_back(names.at(static_cast<std::size_t>(label)));
    lines.push_back(joined(words));
  }
  return lines;
}

std::vector<std::string> label_lines(std::span<const TaggedSentence> sentences) {
  std::vector<std::string> lines;
  for (const TaggedSentence& sentence : sentences) lines.push_back(joined(sentence.tags));
  return lines;
}

}  // namespace nmt
