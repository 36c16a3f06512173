#pragma once

#include "config/option.h"
#include "text/vocabulary/train_vocabulary.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-vocab train.
struct LearnVocabularySpec {
  std::vector<std::string> files;  ///< text, one sentence per line
  std::string model;               ///< the SentencePiece model to write
  VocabularyTraining training;
};

/// The options of nmt-vocab train.
std::vector<config::Option> fields(LearnVocabularySpec& spec);

/// Learns a vocabulary and writes it; returns its number of pieces. Errors (usage): no files, no
/// model; (data): no text; as TextFile, LineWriter and train_vocabulary.
int learn_vocabulary(const LearnVocabularySpec& spec);

}  // namespace nmt::app
