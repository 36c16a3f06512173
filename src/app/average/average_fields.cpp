#include "app/average/average.h"
#include "app/common_options.h"

namespace nmt::app {

std::vector<config::Option> fields(AverageSpec& spec) {
  using config::Option;
  return joined(
      {config::in_group("files", {model_option(&spec.model, "model directory with the checkpoints"),
                                  model_output_option(&spec.output)}),
       config::in_group(
           "checkpoints",
           {Option("last", &spec.last, "average the N latest checkpoints; 0: no limit")
                .range(0, 100000),
            Option("best", &spec.best, "average the N latest checkpoints that were the best so far")
                .range(0, 100000),
            Option("checkpoints", &spec.checkpoints,
                   "average these checkpoints, named by their updates")
                .meta("N...")})});
}

}  // namespace nmt::app
