#pragma once

#include "config/compute_spec.h"
#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-tag.
struct TagSpec {
  std::string model;
  std::string input;     ///< text, one sentence per line; "" and "-": standard input
  std::string output;    ///< "" and "-": standard output
  std::string evaluate;  ///< file of columns to score instead
  ComputeSpec compute;
};

/// The options of nmt-tag.
std::vector<config::Option> fields(TagSpec& spec);
/// Error (usage): no model; both input and evaluate.
void check(const TagSpec& spec);

/// Tags every line of the input, whose words white space separates, and writes as many lines of
/// tags; or, with `evaluate`, scores the tags of a file of columns and writes the score. Errors: as
/// LoadedTagger, LineReader::open, read_columns and LineWriter.
void tag(const TagSpec& spec);

}  // namespace nmt::app
