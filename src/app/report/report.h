#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Which training to show, and where the page goes.
struct ReportSpec {
  std::string model;   ///< the model directory
  std::string output;  ///< the HTML page; "" and "-": standard output
  std::string json;    ///< the page's numbers; "": nowhere
  int worst = 20;      ///< development sentences to show, the worst first
};

/// The options of nmt-report.
std::vector<config::Option> fields(ReportSpec& spec);

/// Writes the training of a model directory as one HTML page. Errors (usage): no model; as
/// PageOutput and training_report.
void report(const ReportSpec& spec);

}  // namespace nmt::app
