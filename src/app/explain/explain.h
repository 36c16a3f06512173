#pragma once

#include "config/option.h"
#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::app {

/// The search for pages: those of longer sentences are hard to read.
SearchSpec explained_search();

/// What to explain, and where the page goes.
struct ExplainSpec {
  std::string model;              ///< the model directory
  std::string input;              ///< one sentence per line; "" and "-": standard input
  std::vector<std::string> text;  ///< lines in place of an input
  int sentences = 50;             ///< show so many lines at most
  std::string output;             ///< the HTML page; "" and "-": standard output
  std::string json;               ///< the page's numbers; "": nowhere
  std::string gates;              ///< every gate of every channel, as safetensors; "": nowhere
  SearchSpec search = explained_search();
  ComputeSpec compute;
};

/// The options of nmt-explain.
std::vector<config::Option> fields(ExplainSpec& spec);

/// Translates the lines and writes what the model does meanwhile, as one HTML page. Errors (usage):
/// no model; (data): no line; as LoadedModel::load, LineInput and PageOutput.
void explain(const ExplainSpec& spec);

}  // namespace nmt::app
