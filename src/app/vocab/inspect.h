#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-vocab inspect.
struct InspectVocabularySpec {
  std::string model;   ///< the vocabulary, a SentencePiece model
  std::string input;   ///< "" and "-": standard input; for encode and decode
  std::string output;  ///< "" and "-": standard output
  // At most one of these three; without any, a summary is written.
  bool pieces = false;  ///< write every piece with its id
  bool encode = false;  ///< split lines of text into pieces
  bool decode = false;  ///< join lines of pieces to text
  bool ids = false;     ///< encode and decode write and read ids instead of pieces
};

/// The options of nmt-vocab inspect.
std::vector<config::Option> fields(InspectVocabularySpec& spec);

/// Writes spec.output. If the input is a pipe or terminal, each result is flushed before it waits
/// for the next line. Errors (usage): no model, settings that contradict each other; (data): a line
/// of ids with other text; as Vocabulary::load, LineReader::open and LineWriter.
void inspect_vocabulary(const InspectVocabularySpec& spec);

}  // namespace nmt::app
