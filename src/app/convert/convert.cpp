#include "app/convert/convert.h"

#include "app/common_options.h"
#include "app/convert/convert_check.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/thread_pool.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"
#include "model/directory/write_model.h"
#include "model/model.h"

namespace nmt::app {

std::vector<config::Option> fields(ConvertSpec& spec) {
  using config::Option;
  return joined(
      {config::in_group(
           "files",
           {model_option(&spec.model, "model directory; its best checkpoint, or else the latest"),
            model_output_option(&spec.output)}),
       config::in_group("conversion",
                        {Option("precision", &spec.precision, "stored precision of the weights")
                             .one_of({"int8", "bfloat16", "float32"}),
                         Option("check", &spec.check, "source and reference text for the check")
                             .unset_means("the stored development set")
                             .meta("FILE"),
                         Option("no-check", &spec.no_check, "write the model unchecked"),
                         Option("check-sentences", &spec.check_sentences, "sentences to check")
                             .range(1, 1000000),
                         Option("tolerance", &spec.tolerance, "maximum loss of BLEU in the check")
                             .range(0, 100)}),
       config::in_group("conversion", config::only({"beam-size"}, config::fields(spec.search))),
       config::only({"cpu-threads"}, config::fields(spec.compute))});
}

void convert(const ConvertSpec& spec) {
  if (spec.model.empty()) fail(ExitStatus::usage, "no model directory given; name it with -m DIR");
  if (spec.output.empty())
    fail(ExitStatus::usage, "no output given; name a new directory with -o DIR");
  if (spec.no_check && !spec.check.empty())
    fail(ExitStatus::usage, "check and no-check exclude each other");
  const Dtype to = *parse_weights(name_of(spec.precision));
  const ModelDirectory directory = ModelDirectory::open(spec.model);
  directory.require(Task::translation);
  if (to != Dtype::f32 && directory.weights() != Dtype::f32)
    fail(ExitStatus::usage, "model: {} has {} weights; {} weights are made from float32",
         spec.model, precision_name(directory.weights()), name_of(spec.precision));
  expect_new(spec.output);
  nlohmann::ordered_json info{{"converted-to", name_of(spec.precision)}};
  // Widening does not change the weights, so no check is needed.
  if (to != Dtype::f32 && !spec.no_check) info["check"] = check_conversion(spec, to);
  const StoredCheckpoint checkpoint = directory.published();
  const safetensors::File file = checkpoint.open_model();
  Model names(directory.spec(), directory.source_size(), directory.target_size(), Context{}, 1);
  check_weights(file, directory.weights(), names.parameters());
  ThreadPool pool(spec.compute.cpu_threads);
  const ConvertedWeights weights =
      convert_weights(file, directory.weights(), names.parameters(), to, {&pool});
  write_model(spec.output, directory, weights.tensors, to, checkpoint.updates(), info.dump());
  log::info(
      "{}: {:.1f} MB of weights in {} ({} has {:.1f} MB); translate with: nmt-translate -m {} < "
      "INPUT > OUTPUT",
      spec.output, static_cast<double>(stored_bytes(names.parameters(), to)) * 1e-6,
      name_of(spec.precision), spec.model,
      static_cast<double>(stored_bytes(names.parameters(), directory.weights())) * 1e-6,
      spec.output);
}

}  // namespace nmt::app
