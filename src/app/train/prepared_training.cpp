#include "app/train/prepared_training.h"

#include "app/train/resumed_settings.h"
#include "config/period.h"
#include "core/log.h"
#include "train/autoconfig.h"

#include <utility>
#include <vector>

namespace nmt::app {
namespace {

train::Communicator& join(const TrainingSpec& spec, Processes& processes) {
  check(spec);
  train::Communicator& hosts = processes.join();
  hosts.wait_at_most(spec.compute.rank_timeout);
  return hosts;
}

// Keeps the values chosen by the previous run; other changes are logged or refused.
void resume_settings(TrainingSpec& spec, const train::TrainingState& before,
                     const TrainingDirectory& directory, bool is_first) {
  std::vector<train::ChangedSetting> changes = take_over(spec, before.settings);
  // The same vocabularies may have another file name. Only the first rank compares them.
  std::erase_if(changes, [&](const train::ChangedSetting& change) {
    return change.name == "vocabs" && (!is_first || directory.has_vocabularies(spec.data.vocabs));
  });
  train::announce_changes(changes, spec.train.model);
}

// Sets unset values that depend on the size of the training text.
void choose_settings(TrainingSpec& spec, const TrainingText& text, bool is_new,
                     std::vector<train::Choice>& choices) {
  for (train::Choice& choice : train::choose(text.size(), spec.model, spec.data, spec.train))
    choices.push_back(std::move(choice));
  if (is_new && !spec.ties_given() && train::choose_tying(spec.model, spec.data))
    choices.push_back({"tied-embeddings-all", "true", "one vocabulary for both sides"});
}

std::string batching_of(const DataSpec& data, const TrainingText& text) {
  return fmt::format(
      "{} without {} of {}; seed {}, max-length {}{}{}, mini-batch {}, mini-batch-words {}, "
      "maxi-batch {}",
      text.corpus->hash(), text.excluded.size(), text.corpus->pairs(), data.seed, data.max_length,
      data.max_length_unit == LengthUnit::words ? " words" : "",
      data.max_length_crop ? " cropped" : "", data.mini_batch, data.mini_batch_words,
      data.maxi_batch);
}

// Makes relative lengths absolute: --after +10e counts from the current progress.
void resolve_after(TrainSpec& spec, const PreparedTraining& training) {
  Progress done = training.before ? training.before->progress : Progress{};
  if (training.before && training.before->corpus != training.batching)
    done.epochs = 0;  // the Trainer restarts the corpus
  const std::string after = std::exchange(spec.after, absolute_periods(spec.after, done, "after"));
  if (after != spec.after) log::info("after: {} is {} here", after, spec.after);
}

void warn_of_other_hold_out(const DataSpec& data, const PreparedTraining& training) {
  const auto& before = training.before;
  if (!before || !data.valid_sets.empty() ||
      before->corpus.starts_with(training.text.corpus->hash()))
    return;
  log::warn(
      "the development set is held out from other text than before; if that text contained the "
      "same "
      "pairs, they have been trained on; name another with --valid-sets");
}

}  // namespace

PreparedTraining::PreparedTraining(TrainingSpec& asked, Processes& processes)
    : hosts(join(asked, processes)),
      heartbeat("reading the training text"),
      device(asked, processes, hosts),
      directory(asked.train, device.ranks()),
      before(directory.training_so_far()) {
  warn_without_effect(asked);
  if (before) resume_settings(asked, *before, directory, device.is_first());
  std::vector<train::Choice> choices;
  text = open_training_text(asked.data, choices, device.ranks());
  choose_settings(asked, text, !before, choices);
  check(asked);
  batching = batching_of(asked.data, text);
  resolve_after(asked.train, *this);
  warn_of_other_hold_out(asked.data, *this);
  for (const train::Choice& choice : choices)
    log::info("{}: {} (chosen: {})", choice.name, choice.value, choice.why);
  spec = asked;
}

}  // namespace nmt::app
