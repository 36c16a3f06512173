#include "app/average/average.h"
#include "app/common_options.h"

namespace nmt::app {

std::vector<config::Option> fields(AverageSpec& spec) {
  using config::Option;
  return joined(
      {config::in_group("files",
                        {model_option(&spec.model, "the model directory with the checkpoints"),
                         model_output_option(&spec.output)}),
       config::in_group(
           "checkpoints",
           {Option("last", &spec.last,
                   "average the N newest; with none of these options all that are there")
                .range(0, 100000),
            Option("best", &spec.best,
                   "average the N newest of those that were the best so far when saved")
                .range(0, 100000),
            Option("checkpoints", &spec.checkpoints,
                   "average these: numbers of updates, as the folders under checkpoints/ are named")
                .meta("N...")})});
}

}  // namespace nmt::app
