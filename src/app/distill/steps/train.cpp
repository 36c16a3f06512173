#include "app/train/train.h"

#include "app/distill/steps/steps.h"
#include "app/processes.h"
#include "config/settings.h"
#include "core/number_text.h"
#include "model/directory/model_directory.h"

#include <filesystem>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

// The vocabularies of a model directory, as --vocabs names them.
std::vector<std::string> vocabularies(const std::string& model) {
  const std::string joint = model + "/vocab.spm";
  std::error_code error;
  if (std::filesystem::exists(joint, error)) return {joint};
  return {model + "/src.spm", model + "/trg.spm"};
}

TrainingSpec student(const Distillation& all) {
  TrainingSpec spec = all.spec.student;
  spec.data.train_sets = {all.work.source(), all.work.target()};
  spec.train.model = all.work.student();
  spec.start_anew = "repeat the step with --redo train";
  if (all.spec.aligns()) spec.data.guided_alignment = all.work.links();
  if (all.spec.shares_vocabularies()) spec.data.vocabs = vocabularies(all.spec.teachers.front());
  return spec;
}

// The options that were given, without files and devices.
Json settings(const Distillation& all) {
  TrainingSpec spec = all.spec.student;
  Json given = Json::object();
  for (const config::Option& option : fields(spec))
    if (spec.is_given(option.name) && option.role != config::Role::location &&
        !std::holds_alternative<std::monostate>(option.target))
      given[option.name] = config::joined_values(option);
  return given;
}

ExitStatus run(const Distillation& all, Json& result) {
  TrainingSpec spec = student(all);
  Processes alone;
  PreparedTraining prepared(spec, alone);
  TrainingControl control;
  control.command = all.command;
  control.catch_signals = true;
  const TrainingResult ended = train(prepared, control);
  if (ended.status != ExitStatus::ok) return ended.status;
  result = {{"updates", ended.progress.updates}};
  if (ended.best)
    result.update(
        {{"metric", ended.best_metric}, {"best", *ended.best}, {"at", ended.best_update}});
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  std::string text = fmt::format("{} updates", grouped(result.at("updates").get<std::int64_t>()));
  if (result.contains("best"))
    text +=
        fmt::format(", best {} {:.4g} at update {}", result.at("metric").get<std::string>(),
                    result.at("best").get<double>(), grouped(result.at("at").get<std::int64_t>()));
  return text;
}

}  // namespace

const Step train_step{DistillStep::train, settings, run, summary, true};

}  // namespace nmt::app
