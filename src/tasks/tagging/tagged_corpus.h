#pragma once

#include "data/columns.h"
#include "nmt/vocabulary.h"
#include "tasks/example_batches.h"
#include "tasks/tagging/tagger.h"
#include "tasks/tagging/word_forms.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// The labels of a tagger are the words of its target vocabulary: label k is id k + first_label.
constexpr std::int32_t first_label = 3;
/// The names of the labels, by number.
std::vector<std::string> label_names(const Vocabulary& labels);

/// Sentences as a tagger reads them.
struct TaggedCorpus {
  std::vector<Ids> words;   ///< numbers of WordForms
  std::vector<Ids> labels;  ///< from 0; kernels::no_target: a label that the tagger does not have
};
TaggedCorpus encode(std::span<const TaggedSentence> sentences, const Vocabulary& labels,
                    WordForms& forms);

/// The training batches of a corpus, which must outlive them.
struct TaggingBatches : ExampleBatches {
  TaggingBatches(const TaggedCorpus& corpus, const DataSpec& spec, const RankSlice& share);
};

/// Tags sentences of numbers of WordForms, in batches of similar length; a sentence without words
/// gets no labels. `on_batch` is called before each batch.
std::vector<Ids> tag_all(Tagger& tagger, std::span<const Ids> sentences,
                         const std::function<void()>& on_batch = {});
/// The mean loss per label in nats, and the labels of every sentence.
struct TaggingResult {
  double cross_entropy = 0;
  std::vector<Ids> labels;
};
TaggingResult evaluate(Tagger& tagger, const TaggedCorpus& corpus,
                       const std::function<void()>& on_batch = {});

/// Lines of labels separated by spaces.
std::vector<std::string> label_lines(std::span<const Ids> labels,
                                     const std::vector<std::string>& names);
std::vector<std::string> label_lines(std::span<const TaggedSentence> sentences);

}  // namespace nmt
