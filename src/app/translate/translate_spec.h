#pragma once

#include "app/ensemble.h"
#include "config/option.h"
#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::app {

/// What translating needs to know.
struct TranslateSpec {
  EnsembleSpec models;
  SearchSpec search;
  ComputeSpec compute;
  bool pieces_in = false;   ///< lines are in pieces of the source vocabulary already
  bool pieces_out = false;  ///< translations stay in pieces of the target vocabulary

  // For translate(), which reads and writes files.
  std::string input;              ///< "" and "-": standard input
  std::vector<std::string> text;  ///< lines to translate in place of an input
  std::string output;             ///< "" and "-": standard output
};

/// The options of nmt-translate.
std::vector<config::Option> fields(TranslateSpec& spec);
/// Error (usage): settings out of range, or that contradict each other.
void check(const TranslateSpec& spec);

}  // namespace nmt::app
