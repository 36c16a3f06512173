#include "app/train/train.h"

#include "app/compute/processes.h"
#include "app/distill/steps/steps.h"
#include "app/distill/student_training.h"
#include "app/train/resumed_settings.h"
#include "app/train/training_vocabularies.h"
#include "config/fields.h"
#include "config/period.h"
#include "config/settings.h"
#include "core/number_text.h"
#include "model/directory/model_directory.h"
#include "train/stop_rules.h"
#include "train/training_state.h"

#include <algorithm>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

// Of the search, which only validates here. The later steps record it.
bool is_of_search(const std::string& option) {
  SearchSpec search;
  const std::vector<config::Option> all = config::validation_fields(search);
  return std::any_of(all.begin(), all.end(),
                     [&](const config::Option& each) { return each.name == option; });
}

// The options that were given, without files, devices and search.
Json settings(const Distillation& all) {
  TrainingSpec spec = all.spec.student;
  Json given = Json::object();
  for (const config::Option& option : fields(spec))
    if (spec.is_given(option.name) && option.role != config::Role::location &&
        !is_of_search(option.name) && !std::holds_alternative<std::monostate>(option.target))
      given[option.name] = config::joined_values(option);
  return given;
}

// What the existing training of the student is to be continued with.
struct Continuation {
  std::vector<train::ChangedSetting> changes;  ///< settings that differ from its own
  bool is_over = false;                        ///< a stopping rule applies already
};

bool is_over(const TrainSpec& spec, const train::TrainingState& state) {
  if (spec.after.find('+') != std::string::npos) return false;  // relative to the checkpoint
  if (!state.is_validated()) return false;
  const std::vector<Period> after = parse_periods(spec.after, "after");
  return !train::finished(spec, after, state, state.seconds).empty();
}

Continuation continuation(const Distillation& all) {
  const ModelDirectory model = ModelDirectory::open(all.work.student());
  const std::optional<StoredCheckpoint> latest = model.latest();
  if (!latest) return {};
  const auto state = train::TrainingState::from_json(latest->read_info(), model.path());
  TrainingSpec spec = student_training(all.spec, all.work);
  Continuation next;
  next.changes = take_over(spec, state.settings);
  // The links are those of the step align, wherever the directory lies.
  std::erase_if(next.changes, [&](const train::ChangedSetting& change) {
    return change.name == "guided-alignment" || is_of_search(change.name) ||
           (change.name == "vocabs" &&
            contain_vocabularies(spec.data.vocabs, model.load_vocabularies()));
  });
  next.is_over = is_over(spec.train, state);
  return next;
}

std::string described(const train::ChangedSetting& change, const std::string& refusal) {
  return fmt::format("{}: {} before, {} now ({})", change.name, change.before, change.now, refusal);
}

StepState resume_state(const Distillation& all) {
  const Continuation next = continuation(all);
  for (const train::ChangedSetting& change : next.changes)
    if (!change.refusal.empty())
      return {StepState::Kind::refused, described(change, change.refusal)};
  if (next.is_over && !next.changes.empty())
    return {
        StepState::Kind::refused,
        described(next.changes.front(), "the training is over, a larger after would extend it")};
  return {StepState::Kind::continues, ""};
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  const bool is_new = !all.work.missing(DistillStep::train, 0).empty();
  const Continuation next = is_new ? Continuation{} : continuation(all);
  TrainingSpec spec = student_training(all.spec, all.work);
  Processes alone;
  PreparedTraining prepared(spec, alone);
  if (!prepared.before) begin();
  bool trains = false;
  TrainingControl control;
  control.command = all.command;
  control.catch_signals = true;
  // Before the first update: what computes none must not change the record.
  control.stop = [&] {
    begin();
    trains = true;
    return false;
  };
  const TrainingResult ended = train(prepared, control);
  if (ended.status != ExitStatus::ok) return ended.status;
  if (!trains && !next.changes.empty())
    refuse_other_settings(DistillStep::train,
                          described(next.changes.front(), "the training is over"));
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

const Step train_step{DistillStep::train, settings, run, summary, nullptr, nullptr, resume_state};

}  // namespace nmt::app
