#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-report.
struct ReportSpec {
  std::string model;   ///< the model directory
  std::string output;  ///< the HTML page; "" and "-": standard output
  std::string json;    ///< the page's numbers; "": not written
  int worst = 20;      ///< number of development sentences to show, worst first
};

/// The options of nmt-report.
std::vector<config::Option> fields(ReportSpec& spec);

/// Writes the training of a model directory as one HTML page. Errors (usage): no model; as
/// PageOutput and training_report.
void report(const ReportSpec& spec);

}  // namespace nmt::app
