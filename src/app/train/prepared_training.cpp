#include "app/train/prepared_training.h"

#include "app/train/resumed_settings.h"
#include "app/train/training_vocabularies.h"
#include "config/fields.h"
#include "config/period.h"
#include "core/error.h"
#include "core/log.h"
#include "train/autoconfig.h"
#include "train/trainer.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace nmt::app {
namespace {

train::Communicator& join(const TrainingSpec& spec, Processes& processes) {
  check(spec);
  train::Communicator& hosts = processes.join();
  hosts.set_timeout(spec.compute.rank_timeout);
  return hosts;
}

// Given names of the same vocabularies replace the stored ones. These stay where they decide more
// than names: that the vocabularies were learned, or whether both sides have one.
void keep_kind_of_vocabularies(DataSpec& data, const std::string& settings) {
  DataSpec earlier = data;
  earlier.vocabs = earlier_vocabs(settings);
  if (earlier.vocabs.empty() || config::one_vocabulary(earlier) != config::one_vocabulary(data))
    data.vocabs = std::move(earlier.vocabs);
}

// Keeps the values chosen by the previous run; other changes are logged or refused. Returns the
// names of the changed settings.
std::vector<std::string> resume_settings(TrainingSpec& spec, const train::TrainingState& before,
                                         const TrainingDirectory& directory,
                                         const TrainingTask& task, bool is_rank_0) {
  std::vector<train::ChangedSetting> changes = take_over(spec, before.settings);
  const std::vector<std::string> idle = task.idle_options();
  std::erase_if(changes, [&idle](const train::ChangedSetting& change) {
    return std::ranges::find(idle, change.name) != idle.end();
  });
  // The same vocabularies may have other file names. Only the first rank compares them.
  const auto is_same = [&](const train::ChangedSetting& change) {
    return change.name == "vocabs" &&
           (!is_rank_0 || contain_vocabularies(spec.data.vocabs, directory.vocabularies(),
                                               task.named_vocabularies()));
  };
  if (std::erase_if(changes, is_same) > 0) keep_kind_of_vocabularies(spec.data, before.settings);
  train::announce_changes(changes, spec.train.model, spec.start_anew);
  std::vector<std::string> names;
  for (const train::ChangedSetting& change : changes) names.push_back(change.name);
  return names;
}

// Warns of settings that need more validations without improvement than early stopping allows. At
// the same number they still take effect, for a training that is extended. `averages`: averaging
// has begun already.
void warn_of_early_stopping(const TrainSpec& spec, bool averages) {
  const bool validates = spec.valid_freq.empty() || parse_period(spec.valid_freq, "valid-freq");
  if (spec.early_stopping == 0 || !validates) return;
  const auto warn = [&spec](const char* option, int stalls) {
    if (stalls > spec.early_stopping)
      log::warn("{} {} has no effect: early-stopping {} comes first", option, stalls,
                spec.early_stopping);
  };
  if (!averages) warn("average-after", spec.average_after);
  const bool decays = spec.lr_decay > 0 && spec.lr_decay_strategy == DecayStrategy::stalled;
  if (decays && !spec.lr_decay_start.empty()) warn("lr-decay-start", spec.lr_decay_start.back());
}

// The changed settings on which the values of the metric depend that decides about the best
// checkpoint; "": none, or another metric decides now.
std::string changed_metric_options(const TrainingSpec& spec, const train::TrainingState& before,
                                   const std::vector<std::string>& changed) {
  if (spec.train.valid_metrics.empty()) return "";
  const ValidMetric metric = spec.train.valid_metrics.front();
  if (name_of(metric) != before.best_metric ||
      (metric != ValidMetric::bleu && metric != ValidMetric::chrf))
    return "";
  SearchSpec search;
  std::vector<std::string> scored{"valid-max-sentences"};
  for (const config::Option& option : config::validation_fields(search))
    if (option.role != config::Role::location && option.role != config::Role::compute &&
        option.name != "valid-mini-batch")  // does not change translations
      scored.push_back(option.name);
  std::string names;
  for (const std::string& name : changed)
    if (std::find(scored.begin(), scored.end(), name) != scored.end())
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

bool has_same_text(const train::TrainingState& before, const TrainingTask& task) {
  return before.batching_hash.starts_with(task.text_identity().current);
}

// Links that changed under the name of their file would pass unnoticed. Another file is a logged
// change, and links of other text must differ.
void require_same_alignments(const TrainingSpec& spec, const train::TrainingState& before,
                             const TrainingTask& task, const std::vector<std::string>& changed) {
  const std::string now = task.alignments_identity().current;
  if (now.empty() || before.alignments.empty() || now == before.alignments ||
      !has_same_text(before, task) ||
      std::find(changed.begin(), changed.end(), "guided-alignment") != changed.end())
    return;
  fail(ExitStatus::usage,
       "{}: the links differ from those that the training in {} used (guided-alignment); restore "
       "the file, give the new links under another file name, or {}",
       spec.data.guided_alignment, spec.train.model, spec.start_anew);
}

// The defaults of the task, where the caller set nothing.
void set_defaults(TrainingSpec& spec, const TrainingTask& task) {
  const std::vector<config::Option> options = fields(spec);
  for (const TrainingTask::Default& usual : task.defaults()) {
    if (spec.is_given(usual.option)) continue;
    for (const config::Option& option : options)
      if (option.name == usual.option) config::assign(option, usual.value, option.name);
  }
}

// The same command goes on to the end that it had when it was stopped: a relative --after that has
// not been reached is not counted anew, unless early stopping ended the training before.
void keep_after(TrainSpec& spec, const train::TrainingState& before) {
  const bool stopped_early = spec.early_stopping > 0 && before.stalled >= spec.early_stopping;
  if (spec.after != before.relative_after || stopped_early) return;
  const std::string after = earlier_after(before.settings);
  const std::vector<Period> ends = parse_periods(after, "after");
  if (std::none_of(ends.begin(), ends.end(),
                   [&](const Period& end) { return is_reached(end, before.progress); }))
    spec.after = after;
}

// Epochs of other text count anew, and so do those of a relative --after, also where keep_after()
// kept its end; updates and tokens count on.
void count_epochs_anew(TrainSpec& spec, const std::string& relative_after) {
  std::istringstream relative(relative_after), kept(spec.after);
  std::string after;
  for (std::string anew, end; std::getline(relative, anew, ',') && std::getline(kept, end, ',');) {
    const bool is_in_epochs =
        anew.starts_with('+') &&
        parse_period(std::string_view(anew).substr(1), "after").unit == Period::Unit::epochs;
    after += (after.empty() ? "" : ",") + (is_in_epochs ? anew : end);
  }
  spec.after = after;
}

// Makes relative lengths absolute: --after +10e counts from the current progress.
void resolve_after(TrainSpec& spec, const PreparedTraining& training) {
  Progress done = training.before ? training.before->progress : Progress{};
  if (training.before) done.epochs = training.before->epochs_kept(training.batching_hash);
  const std::string after = std::exchange(spec.after, absolute_periods(spec.after, done, "after"));
  if (after != spec.after) log::info("after: {} is {} here", after, spec.after);
}

// Otherwise a resumed training would name other settings, which differ because there is no text.
void require_training_text(const TrainingSpec& spec) {
  if (!spec.data.train_sets.empty()) return;
  const Task task = spec.model.task;
  if (task == Task::translation)
    fail(ExitStatus::usage, "train-sets: no file given, expected two: nmt-train SOURCE TARGET");
  fail(ExitStatus::usage, "train-sets: no file given; task={} expects one", name_of(task));
}

void warn_of_other_hold_out(const DataSpec& data, const PreparedTraining& training) {
  const auto& before = training.before;
  if (!before || !data.valid_sets.empty() || has_same_text(*before, *training.task)) return;
  log::warn(
      "the development set is held out from other text than before; if that text contained the "
      "same pairs, they have been trained on; name another with valid-sets");
}

}  // namespace

PreparedTraining::PreparedTraining(TrainingSpec& asked, Processes& processes)
    : hosts(join(asked, processes)),
      heartbeat("reading the training text"),
      device(asked, processes, hosts),
      directory(asked.train, asked.start_anew, device.ranks()),
      before(directory.training_so_far()),
      task(make_training_task(asked.model.task)) {
  require_training_text(asked);
  set_defaults(asked, *task);
  // What follows calls collectives that depend on the settings.
  if (device.has_several_ranks())
    require_same(device.ranks(), yaml_of_all_ranks(asked), "the settings differ");
  if (asked.train.after.find('+') != std::string::npos) relative_after = asked.train.after;
  if (before && !relative_after.empty()) keep_after(asked.train, *before);
  extends = before && asked.train.after.find('+') != std::string::npos;
  std::vector<std::string> changed;
  if (before) {
    changed = resume_settings(asked, *before, directory, *task, device.is_rank_0());
    changed_metric_options = app::changed_metric_options(asked, *before, changed);
  }
  std::vector<train::Choice> choices;
  task->read(asked, !before, choices, device.ranks());
  if (before) {
    before->update_text_hash(task->text_identity());
    const TextIdentity alignments = task->alignments_identity();
    if (before->alignments == alignments.v0_2) before->alignments = alignments.current;
  }
  if (before) require_same_alignments(asked, *before, *task, changed);
  check(asked);
  check_effects(asked, task->idle_options());
  warn_of_early_stopping(asked.train, before && before->average_from >= 0);
  task->try_model(asked);
  batching_hash = task->batching_hash(asked);
  if (before && !relative_after.empty() && !has_same_text(*before, *task))
    count_epochs_anew(asked.train, relative_after);
  resolve_after(asked.train, *this);
  train::Trainer::check(asked.train);
  warn_of_other_hold_out(asked.data, *this);
  for (const train::Choice& choice : choices)
    log::info("{}: {} (chosen: {})", choice.name, choice.value, choice.why);
  spec = asked;
}

}  // namespace nmt::app
