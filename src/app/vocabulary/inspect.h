#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// What to show of a vocabulary, or what to do with text by it.
struct InspectVocabularySpec {
  std::string model;   ///< the vocabulary, a SentencePiece model
  std::string input;   ///< "" and "-": standard input; for encode and decode
  std::string output;  ///< "" and "-": standard output
  // At most one of these three; without any, a summary is written.
  bool pieces = false;  ///< write every piece after its id
  bool encode = false;  ///< cut lines of text into pieces
  bool decode = false;  ///< put lines of pieces together to text
  bool ids = false;     ///< encode and decode write and read ids in place of pieces
};

/// The options of nmt-vocab inspect.
std::vector<config::Option> fields(InspectVocabularySpec& spec);

/// Writes spec.output. A pipe or terminal gets each answer before the next line is waited for.
/// Errors (usage): no model, settings that contradict each other; (data): a line of ids with
/// anything else; as Vocabulary::load, LineReader::open and LineWriter.
void inspect_vocabulary(const InspectVocabularySpec& spec);

}  // namespace nmt::app
