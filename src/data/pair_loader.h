#pragma once

#include "config/specs.h"
#include "data/alignment/alignments.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/loader_state.h"
#include "nmt/vocabulary.h"
#include "text/document_context.h"
#include "text/noise.h"
#include "text/vocabulary/bpe_dropout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace nmt {

/// A pair of encoded sentences.
struct EncodedPair {
  std::int64_t line = 0;
  /// Before cropping, in the unit of max-length; 0 for a sentence without pieces.
  std::int32_t source_length = 0, target_length = 0;
  /// After cropping, with the context in front; empty when the pair is dropped.
  Ids source = {};
  /// After cropping; empty when the pair is dropped.
  Ids target = {};
  Ids links = {};  ///< as of BatchLinks; empty without alignments
};

/// A group of pairs that is sorted by length.
struct Window {
  std::vector<EncodedPair> pairs;  ///< in the order of the epoch, without dropped pairs
  std::int64_t read = 0;           ///< number of pairs read, including dropped ones
  DropCounts drops;
};

/// Turns lines into encoded pairs, and pairs into batches.
struct PairLoader {
  const ParallelCorpus& corpus;
  const Vocabulary& source;
  const Vocabulary& target;
  DataSpec spec;
  TextNoise noise = TextNoise();
  /// BPE-dropout of both sides; null: none.
  std::shared_ptr<const BpeDropout> source_dropout = nullptr, target_dropout = nullptr;
  int context_sentences = 0;               ///< ModelSpec::context_sentences
  const Alignments* alignments = nullptr;  ///< of the corpus; null: none

  /// Checks the settings. Errors (usage): a value is out of range.
  void check() const;
  /// Encodes the pair at a line, with the noise and the BPE-dropout of that epoch. A pair that they
  /// make too long stays without. Lines of the context have the noise and the pieces of their own
  /// pairs in that epoch; whether those pairs are used does not matter. Sentence and context have
  /// max-length pieces or words together, one for each separator included.
  /// Links of words that noise or cropping removes are dropped.
  EncodedPair encode(std::int64_t line, std::int64_t epoch) const;
  /// Whether a pair with these lengths is dropped.
  bool drops(std::int32_t source_length, std::int32_t target_length) const;
  /// The ids of a sentence, cropped, and its length before. With `dropout`, other pieces of the
  /// same text.
  std::pair<Ids, std::int32_t> measure(const Vocabulary& vocabulary, std::string_view text,
                                       const BpeDropout* dropout = nullptr, Rng rng = Rng()) const;
  /// encode() without the context.
  EncodedPair encode_alone(std::int64_t line, std::int64_t epoch) const;
  /// A line of the context.
  MeasuredSentence encode_context(std::int64_t line, std::int64_t epoch) const;
  /// Reads as many pairs as fill maxi_batch batches, but at most `pair_limit`.
  Window window(const std::function<EncodedPair()>& next, std::int64_t pair_limit) const;
  /// Whether a batch of this size is within the limits; steps include </s>.
  bool fits(std::int64_t sentences, std::int64_t source_steps, std::int64_t target_steps) const;
  /// Splits a window into batches of pairs with similar lengths: indices into window.pairs.
  std::vector<std::vector<std::size_t>> cut(const Window& window) const;
  /// TrainingData::largest_batches() for these lines.
  std::vector<Batch> largest(std::span<const std::uint32_t> lines) const;
};

}  // namespace nmt
