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
           {Option("last", &spec.last,
                   "number of latest checkpoints to average, except update 0; 0: no limit")
                .range(0, 100000),
            Option("best", &spec.best,
                   "number of latest best-so-far checkpoints to average; 0: off")
                .range(0, 100000),
            Option("checkpoints", &spec.checkpoints, "update counts of the checkpoints to average")
                .meta("N...")})});
}

}  // namespace nmt::app
