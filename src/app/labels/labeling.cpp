#include "app/labels/labeling.h"

#include "app/common_options.h"
#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/log.h"

namespace nmt::app {
namespace {

using config::Option;

// The path of the output, after all checks.
const std::string& checked_output(const LabelingSpec& spec, const std::string& program) {
  check(spec, program);
  check_outputs(
      {{spec.evaluate.empty() ? or_standard_stream(spec.input) : spec.evaluate}, {spec.model}},
      {{"output", or_standard_stream(spec.output)}});
  return spec.output;
}

}  // namespace

std::vector<Option> fields(LabelingSpec& spec, const LabelingHelp& help) {
  return joined({config::in_group("files", {model_option(&spec.model, help.model),
                                            Option("input", &spec.input, help.input)
                                                .unset_means("standard input")
                                                .alias({"i"})
                                                .meta("FILE"),
                                            output_option(&spec.output, help.output),
                                            Option("evaluate", &spec.evaluate, help.evaluate)
                                                .unset_means("no evaluation")
                                                .meta("FILE")}),
                 config::only({"device", "cpu-threads"}, config::decoding_fields(spec.compute))});
}

void check(const LabelingSpec& spec, const std::string& program) {
  if (spec.model.empty())
    fail(ExitStatus::usage, "model: no directory given; usage: {} MODEL", program);
  if (!spec.input.empty() && !spec.evaluate.empty())
    fail(ExitStatus::usage, "--input and --evaluate exclude each other");
}

Labeling::Labeling(const LabelingSpec& spec, const std::string& program)
    : writer_(checked_output(spec, program)), compute_(spec.compute) {
  log::info("{}", compute_.describe(program));
  arena_ = compute_.new_arena();
}

}  // namespace nmt::app
