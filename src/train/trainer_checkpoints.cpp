#include "core/error.h"
#include "train/best_value.h"
#include "train/parallel/shared.h"
#include "train/stop_rules.h"
#include "train/trainer.h"

#include <algorithm>
#include <string>
#include <utility>

// The checkpoints of a trainer: taken, saved, loaded, returned to.

namespace nmt::train {
namespace {

constexpr int recoveries_allowed = 10;  // each halves the learning rate
constexpr int max_recoveries = 2;       // to one checkpoint, before an older one is taken

}  // namespace

void Trainer::save(const std::string& reason, bool best) {
  const double start = seconds();
  parts_.heartbeat.activity("saving");
  Arena host;
  Checkpoint whole = tensors_.allocate(host, state_.progress.updates);
  tensors_.download(whole);
  if (parts_.communicator.size() > 1) {
    keep_together(parts_.communicator, parts_.model, whole);
    tensors_.upload(whole);
  }
  state_.optimizer_steps = optimizer_.steps();
  state_.position = parts_.source.position();
  TrainingState saved = state_;
  saved.seconds = seconds();
  saved.history = parts_.reporter.position();
  whole.training_state = saved.to_json();
  saved_state_is_final_ = !train::finished(spec_, after_, saved, saved.seconds).empty();
  parts_.store.save(whole, best);
  saved_update_ = state_.progress.updates;
  saved_validation_ = state_.validated_update;
  recoveries_ = 0;
  parts_.reporter.saved(state_.progress, reason, seconds() - start);
}

bool Trainer::resume() {
  const std::optional<std::string> newest = parts_.store.newest();
  if (!newest) return false;
  seconds_before_ = TrainingState::from_json(*newest, "the newest checkpoint").seconds;
  load();
  history_ = state_.history;
  return true;
}

void Trainer::load() {
  const std::string text = parts_.store.newest().value_or("");
  NMT_CHECK(!text.empty(), "there is no checkpoint to go back to");
  TrainingState loaded = TrainingState::from_json(text, "the newest checkpoint");
  loaded.update_text_hash(parts_.text);
  Arena host;
  // Another corpus begins anew, perhaps with batches of another shape.
  Checkpoint whole = tensors_.allocate(host, state_.progress.updates,
                                       loaded.batching_hash == parts_.batching_hash);
  parts_.store.load(whole);
  tensors_.upload(whole);
  optimizer_.set_steps(loaded.optimizer_steps);
  optimizer_.average_from(loaded.average_from);
  optimizer_.clear();
  state_ = loaded;
  state_.settings = parts_.settings;
  state_.relative_after = parts_.relative_after;
  if (!parts_.alignments.empty()) state_.alignments = parts_.alignments;
  saved_update_ = state_.progress.updates;
  saved_validation_ = state_.validated_update;
  if (state_.batching_hash == parts_.batching_hash) {
    parts_.source.restore(state_.position);
  } else {
    const auto hash = [](const std::string& corpus) { return corpus.substr(0, corpus.find(' ')); };
    const bool same_text = hash(state_.batching_hash) == hash(parts_.batching_hash);
    const double kept = state_.epochs_kept(parts_.batching_hash);
    parts_.reporter.event(
        "corpus", state_.progress,
        same_text ? fmt::format("the batching differs from the checkpoint's; restarting the corpus "
                                "after {:.0f} epochs",
                                kept)
                  : "the training text is not the checkpoint's; restarting the corpus",
        true);
    parts_.source.restore(beginning_);
    if (!same_text) {
      state_.stalled = 0;
      // Decays by epochs that stalls began go on: their first epoch is one of the old text.
      state_.stalls.first_epoch = std::min(state_.stalls.first_epoch, 0.0);
    }
    state_.batching_hash = parts_.batching_hash;
    state_.progress.epochs = state_.epochs_before = kept;
  }
  if (state_.development != parts_.development) {
    discard_best("the development set differs from the checkpoint's");
    state_.development = parts_.development;
  }
  adapt_validation();
}

void Trainer::recover(double norm) {
  const std::int64_t recoveries = state_.stalls.recoveries + 1;
  if (recoveries > recoveries_allowed)
    fail(ExitStatus::failed,
         "gradient norm {} at update {} with learning rate {:.3g}, after {} returns to older "
         "checkpoints",
         norm, state_.progress.updates + 1, rate_, recoveries - 1);
  // The gradients at the weights of a checkpoint do not depend on the learning rate: where no
  // update has followed it, none will.
  const std::int64_t newest = saved_update_;
  const bool unsound = state_.progress.updates == newest || recoveries_ >= max_recoveries,
             discarded = unsound && parts_.store.discard_newest();
  if (discarded) recoveries_ = 0;
  ++recoveries_;
  const TrainingState before = state_;
  load();
  parts_.model.forget_states();
  state_.stalls.recoveries = recoveries;
  if (discarded) {  // the store keeps the best checkpoint, which may be newer
    state_.best = before.best;
    state_.best_update = before.best_update;
    state_.best_metric = before.best_metric;
  }
  parts_.reporter.event(
      "recovery", state_.progress,
      fmt::format("{} consecutive updates were not finite: {}returning to update {} with half the "
                  "learning rate",
                  bad_updates_allowed,
                  discarded ? fmt::format("discarding checkpoint {} and ", newest) : "",
                  grouped(state_.progress.updates)),
      true);
  interval_ = {};
}

// For the checkpoint that this run goes on from: what validations before it do not decide. A
// training that is over keeps its best value.
void Trainer::adapt_validation() {
  if (resumed_update_ < 0) resumed_update_ = state_.progress.updates;
  if (state_.progress.updates > resumed_update_) return;  // saved by this run
  if (parts_.extends) state_.stalled = 0;
  if (parts_.changed_metric_options.empty()) return;
  const auto stalled = std::exchange(state_.stalled, 0);
  if (finished_on_all_ranks().empty())
    discard_best(fmt::format("validations differ from the checkpoint's ({})",
                             parts_.changed_metric_options));
  else
    state_.stalled = stalled;
}

void Trainer::discard_best(const std::string& why) {
  parts_.reporter.event("development", state_.progress, why + "; discarding the best value so far",
                        true);
  train::discard_best(state_);
}

}  // namespace nmt::train
