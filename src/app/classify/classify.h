#pragma once

#include "config/compute_spec.h"
#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-classify.
struct ClassifySpec {
  std::string model;
  std::string input;  ///< one text, or two separated by a tab, per line; "" and "-": standard input
  std::string output;    ///< "" and "-": standard output
  std::string evaluate;  ///< file of labeled texts to score instead
  ComputeSpec compute;
};

/// The options of nmt-classify.
std::vector<config::Option> fields(ClassifySpec& spec);
/// Error (usage): no model; both input and evaluate.
void check(const ClassifySpec& spec);

/// Classifies every line of the input and writes as many labels; or, with `evaluate`, prints the
/// error rate on a file of labeled texts. Errors: as LoadedClassifier, LineReader::open,
/// read_labeled_text and LineWriter.
void classify(const ClassifySpec& spec);

}  // namespace nmt::app
