#pragma once

#include "app/files/outputs.h"
#include "app/models/loaded_ensemble.h"
#include "config/option.h"
#include "config/specs.h"
#include "search/text/text_rules.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-translate.
struct TranslateSpec {
  EnsembleSpec models;
  SearchSpec search;
  ComputeSpec compute;
  TextSpec text_rules;
  bool pieces_in = false;   ///< lines are already split into pieces of the source vocabulary
  bool pieces_out = false;  ///< translations are written as pieces of the target vocabulary
  bool attention = false;   ///< keep attention weights (Output::attention)

  // Files of translate().
  std::string input;              ///< "" and "-": standard input
  std::vector<std::string> text;  ///< lines to translate instead of an input file
  std::string output;             ///< "" and "-": standard output
};

/// What a translation reads: input, glossary and shortlist; the models.
JobInputs inputs_of(const TranslateSpec& spec);
/// --preserve, --glossary and --repetition-guard.
std::vector<config::Option> fields(TextSpec& spec);
/// The options of nmt-translate.
std::vector<config::Option> fields(TranslateSpec& spec);
/// Error (usage): settings that are out of range or contradict each other.
void check(const TranslateSpec& spec);

}  // namespace nmt::app
