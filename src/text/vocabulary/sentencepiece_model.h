#pragma once

#include <string_view>
#include <vector>

namespace nmt {

/// How a SentencePiece model cuts text (trainer_spec.model_type of sentencepiece_model.proto).
enum class VocabularyType { unigram = 1, bpe = 2, word = 3, character = 4 };

/// The type of a sound model (see sentencepiece_defect()).
VocabularyType vocabulary_type(std::string_view model);

struct VocabularyPiece {
  std::string_view text;  ///< part of the serialized model
  float score = 0;        ///< of a byte-pair encoding: higher for an earlier merge
  bool is_normal = true;  ///< learned; not <unk>, a control symbol, user-defined, unused or a byte
};

/// The pieces of a sound model in the order of their ids.
std::vector<VocabularyPiece> vocabulary_pieces(std::string_view model);

}  // namespace nmt
