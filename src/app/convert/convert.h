#pragma once

#include "config/option.h"
#include "config/precision.h"
#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-convert.
struct ConvertSpec {
  std::string model;   ///< a model directory; its best checkpoint is used, or else the latest
  std::string output;  ///< a new model directory
  Precision precision = Precision::int8;  ///< int8, bfloat16 or float32

  bool no_check = false;           ///< write the model unchecked
  std::vector<std::string> check;  ///< source and reference; empty: the model's development set
  int check_sentences = 100;       ///< spread over the text; of a language model the first lines
  double tolerance = 0.5;          ///< maximum loss of BLEU
  SearchSpec search;               ///< of the check; its shortlist is stored in the new directory
  ComputeSpec compute;             ///< only cpu_threads is used; the check runs on the CPU
};

/// The options of nmt-convert.
std::vector<config::Option> fields(ConvertSpec& spec);

/// Writes a model directory with the weights in that precision, and with a shortlist if one is
/// named, atomically. Before lower precisions or a shortlist are written, BLEU is compared with
/// that of float32 weights without a shortlist. Errors (usage): no model, no output, wrong
/// settings, weights that are not float32 already; (failed): BLEU falls by more than the tolerance;
/// as ModelDirectory::open, Shortlist::load and write_model.
void convert(const ConvertSpec& spec);

}  // namespace nmt::app
