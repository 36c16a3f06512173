#pragma once

#include "config/option.h"
#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Search options with a lower max_length, since pages of long sentences are hard to read.
SearchSpec explained_search();

/// Specification of nmt-explain.
struct ExplainSpec {
  std::string model;              ///< the model directory
  std::string input;              ///< one sentence per line; "" and "-": standard input
  std::vector<std::string> text;  ///< lines instead of an input file
  int sentences = 50;             ///< maximum number of sentences
  std::string output;             ///< the HTML page; "" and "-": standard output
  std::string json;               ///< the page's numbers; "": not written
  std::string gates;              ///< every gate of every channel, as safetensors; "": not written
  SearchSpec search = explained_search();
  ComputeSpec compute;
};

/// The options of nmt-explain.
std::vector<config::Option> fields(ExplainSpec& spec);

/// Translates the lines and writes attention, gates and memory of the model as one HTML page.
/// Errors (usage): no model; (data): no line; as LoadedModel::load, LineInput and PageOutput.
void explain(const ExplainSpec& spec);

}  // namespace nmt::app
