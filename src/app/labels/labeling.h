#pragma once

#include "app/compute/compute.h"
#include "config/compute_spec.h"
#include "config/option.h"
#include "search/line_writer.h"
#include "tensor/arena.h"
#include "tensor/context.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt::app {

// What nmt-classify and nmt-tag share: both label the lines of a text, or score a file of labels.

/// Specification of a program that labels text.
struct LabelingSpec {
  std::string model;
  std::string input;     ///< "" and "-": standard input
  std::string output;    ///< "" and "-": standard output
  std::string evaluate;  ///< file of labels to score instead
  ComputeSpec compute;
};

/// Help texts of the options of files.
struct LabelingHelp {
  const char *model, *input, *output, *evaluate;
};
std::vector<config::Option> fields(LabelingSpec& spec, const LabelingHelp& help);
/// Error (usage): no model; both input and evaluate. `program`: for the message.
void check(const LabelingSpec& spec, const std::string& program);

/// The output and the compute resources of a run of such a program.
class Labeling {
 public:
  /// Checks the specification, opens the output and logs what computes. Errors: as check(),
  /// check_outputs(), LineWriter and Compute.
  Labeling(const LabelingSpec& spec, const std::string& program);

  LineWriter& writer() { return writer_; }
  Context context() { return compute_.context(*arena_); }

 private:
  LineWriter writer_;
  Compute compute_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace nmt::app
