#include "train/trainer.h"

#include "core/log.h"
#include "train/best_value.h"
#include "train/parallel/shared.h"
#include "train/stop_rules.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

namespace nmt::train {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Language models read streams of targets, in batches whose size is another option.
std::string size_of(const Batch& batch) {
  if (batch.source_steps == 0)
    return fmt::format("{} streams of {} steps", batch.sentences, batch.target_steps);
  return fmt::format("{} pairs ({} source and {} target steps)", batch.sentences,
                     batch.source_steps, batch.target_steps);
}
const char* batch_option(const Batch& batch) {
  return batch.source_steps == 0 ? "mini-batch" : "mini-batch-words";
}

}  // namespace

Trainer::Trainer(const TrainSpec& spec, const Parts& parts)
    : spec_(spec),
      parts_(parts),
      schedule_(spec),
      sums_(parts.communicator.size() > 1
                ? std::make_unique<GradientSums>(parts.communicator, parts.model.parameters(),
                                                 parts.model.context())
                : nullptr),
      optimizer_(spec, parts.model.parameters(), parts.model.context()),
      tensors_(parts.model, optimizer_),
      accumulator_(
          parts.model, optimizer_.loss_sums(),
          [this] {
            if (sums_) sums_->keep();
            optimizer_.clear();
          },
          [this](const Batch& batch) {
            was_split_ = true;
            parts_.reporter.event(
                "memory", state_.progress,
                fmt::format("out of memory in a batch of {}: it and later batches "
                            "of this size are split; a lower {} avoids this",
                            size_of(batch), batch_option(batch)),
                true);
          }),
      after_(parse_periods(spec.after, "after")),
      display_every_(parse_period(spec.disp_freq, "disp-freq")),
      save_every_(parse_period(spec.save_freq, "save-freq")),
      validate_every_(parse_period(spec.valid_freq, "valid-freq")),
      beginning_(parts.source.position()) {
  check(spec);
  state_.batching_hash = parts.batching_hash;
  state_.development = parts.development;
  state_.settings = parts.settings;
  state_.alignments = parts.alignments;
  state_.relative_after = parts.relative_after;
}

void Trainer::check(const TrainSpec& spec) {
  if (spec.optimizer_delay < 1)
    fail(ExitStatus::usage, "optimizer-delay: {} batches an update, needs at least 1",
         spec.optimizer_delay);
  if (!(spec.label_smoothing >= 0 && spec.label_smoothing < 1))
    fail(ExitStatus::usage, "label-smoothing: {} is not in [0, 1)", spec.label_smoothing);
  if (!(spec.max_minutes >= 0))
    fail(ExitStatus::usage, "max-minutes: {} is below 0", spec.max_minutes);
  if (spec.early_stopping < 0)
    fail(ExitStatus::usage, "early-stopping: {} is below 0", spec.early_stopping);
  const Schedule schedule(spec);
  if (schedule.cools_down() && spec.max_minutes == 0 && parse_periods(spec.after, "after").empty())
    fail(ExitStatus::usage, "lr-cooldown: the training has no end: needs after or max-minutes");
  Optimizer::check(spec);
  parse_periods(spec.after, "after");
  for (const auto& [text, option] : {std::pair{&spec.disp_freq, "disp-freq"},
                                     {&spec.save_freq, "save-freq"},
                                     {&spec.valid_freq, "valid-freq"}})
    parse_period(*text, option);
}

double Trainer::seconds() const {
  return seconds_before_ + since(parts_.started);
}

std::string Trainer::finished() const {
  return train::finished(spec_, after_, state_, seconds());
}

// By the checkpoint's own clock, a training that max-minutes ended may not be over yet.
bool Trainer::is_saved_state_final() {
  std::string over = saved_state_is_final_ ? "over" : "";
  if (parts_.communicator.size() > 1) broadcast(parts_.communicator, over);
  return !over.empty();
}

std::string Trainer::finished_on_all_ranks() {
  std::string why = !parts_.validator || state_.is_validated() ? finished() : "";
  if (parts_.communicator.size() > 1) broadcast(parts_.communicator, why);
  return why;
}

ExitStatus Trainer::run() {
  at_start_ = state_.progress;
  parts_.reporter.rewind(
      std::exchange(history_, -1));  // not before: a training that is over keeps its last figures
  if (parts_.communicator.size() > 1) {
    Arena host;
    Checkpoint whole = tensors_.allocate(host, state_.progress.updates);
    tensors_.download(whole);
    broadcast(parts_.communicator, whole);
    tensors_.upload(whole);
  }
  if (state_.progress.updates == 0) dry_run();
  if (saved_update_ < 0) save("start", false);
  if (state_.validation_due) validate(true);
  for (;;) {
    const std::string why = finished();
    const Decision decision = agree_on_all_ranks(!why.empty());
    if (decision.stop != ExitStatus::ok) {
      if (saved_update_ != state_.progress.updates || state_.validation_due)
        save(parts_.stop.reason(decision.stop), false);
      return decision.stop;
    }
    if (decision.over) {
      if (parts_.validator && state_.validated_update != state_.progress.updates) validate(false);
      if (agree_on_all_ranks(true).stop != ExitStatus::ok) continue;
      if (saved_update_ != state_.progress.updates ||
          saved_validation_ != state_.validated_update || !is_saved_state_final())
        save("end", state_.best_update == state_.progress.updates);
      log::status("");
      parts_.reporter.event(
          "end", state_.progress,
          fmt::format("training is over at update {}: {}", grouped(state_.progress.updates), why));
      return ExitStatus::ok;
    }
    const Progress before = state_.progress;
    // Weights whose gradient is not finite are neither saved nor validated: nothing else is done
    // before an update is applied or an older checkpoint is back.
    do update();
    while (state_.bad_updates > 0);
    parts_.reporter.bar(figures());
    if (is_due(display_every_, before, state_.progress) && state_.shown.updates > 0) {
      parts_.reporter.display(figures());
      state_.shown = {};
      interval_ = {};
    }
    // Due too is one that a stop interrupted, if the training has gone back to that checkpoint.
    if (parts_.validator &&
        (state_.validation_due || is_due(validate_every_, before, state_.progress)))
      validate(true);
    if (is_due(save_every_, before, state_.progress) && saved_update_ != state_.progress.updates &&
        !state_.validation_due)
      save("save-freq", false);
  }
}

// What all ranks do next. `over`: whether this rank finds a stop rule that holds.
Decision Trainer::agree_on_all_ranks(bool over) {
  const ExitStatus signal = parts_.stop.pending();
  const double done = schedule_.cools_down() ? share_done(spec_, after_, state_, seconds()) : 0;
  const Decision decision = agree(parts_.communicator, {signal, over, done});
  done_ = decision.done;
  return decision;
}

// Work that makes an arena of its own. Where the device is full, memory of the training's arena
// that no tensor has makes room for it.
template <class Work>
auto Trainer::retry_after_trim(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    parts_.model.context().arena->trim();
  }
  return work();
}

// The largest batches once, weights untouched: what does not fit fails now, and the arena has seen
// its largest sizes.
void Trainer::dry_run() {
  parts_.heartbeat.activity("trying the largest batches");
  const auto start = Clock::now();
  for (const Batch& batch : parts_.source.largest()) {
    accumulator_.add({{batch, pass(0)}});
    optimizer_.clear();
  }
  try {
    if (parts_.validator)
      retry_after_trim([&] { parts_.validator->dry_run(tensors_.copy_weights()); });
  } catch (const Interrupted&) {
    return;  // run() sees the request too
  }
  parts_.reporter.event(
      "dry run", state_.progress,
      fmt::format("the largest batches were tried: {:.0f} MB of tensors at most, {:.1f} s",
                  static_cast<double>(parts_.model.context().arena->statistics().peak) * 1e-6,
                  since(start)));
}

TrainPass Trainer::pass(std::int64_t number) const {
  return {static_cast<float>(spec_.label_smoothing), spec_.seed, static_cast<std::uint64_t>(number),
          static_cast<float>(spec_.guided_alignment_weight)};
}

// Gradients and counts of all ranks' shares.
UpdateCounts Trainer::sum_over_ranks(UpdateCounts counts) {
  if (parts_.communicator.size() > 1) {
    sums_->finish();
    const SummedCounts all = sum(parts_.communicator, counts, std::exchange(was_split_, false));
    for (const int rank : all.split)
      if (rank > 0)  // rank 0 has reported its own
        parts_.reporter.event("memory", state_.progress,
                              fmt::format("out of memory in a batch at rank {}: it is split", rank),
                              true);
    counts = all.counts;
  }
  interval_.source += counts.source;
  interval_.target += counts.target;
  return counts;
}

void Trainer::update() {
  const auto start = Clock::now();
  parts_.heartbeat.activity(fmt::format("computing update {}", state_.progress.updates + 1),
                            state_.progress.updates == 0);
  std::vector<Accumulator::Piece> batches;
  UpdateCounts counts;
  for (int i = 0; i < spec_.optimizer_delay; ++i) {
    const Batch& batch = parts_.source.next();
    batches.push_back({batch, pass(state_.batches++)});
    counts.source += batch.source_tokens;
    counts.sentences += batch.sentences;
  }
  const Trainable::Listener listener =
      sums_ ? Trainable::Listener([this](Completed so_far) { sums_->completed(so_far); })
            : Trainable::Listener();
  counts.target = accumulator_.add(std::move(batches), listener);
  counts = sum_over_ranks(counts);
  state_.progress.epochs = state_.epochs_before + parts_.source.epochs();
  state_.progress.labels += counts.target;
  rate_ =
      schedule_.rate({state_.progress.updates + 1, state_.progress.epochs, state_.progress.labels},
                     state_.stalls, done_);
  UpdateResult result = optimizer_.update(
      rate_, spec_.cost_type == CostType::ce_mean ? counts.sentences : counts.target);
  if (parts_.communicator.size() > 1) {
    double losses[] = {result.cross_entropy, result.smoothed, result.alignment};
    parts_.communicator.all_reduce_sum(losses, std::size(losses));
    result.cross_entropy = losses[0], result.smoothed = losses[1], result.alignment = losses[2];
  }
  interval_.seconds += since(start);
  if (!result.applied) {
    ++state_.bad_updates;
    parts_.reporter.event(
        "skipped", state_.progress,
        fmt::format("update {} skipped: gradient norm {} ({} in a row; {} in a row "
                    "return to the last checkpoint)",
                    state_.progress.updates + 1, result.gradient_norm, state_.bad_updates,
                    bad_updates_allowed),
        true);
    parts_.model.forget_states();
    if (state_.bad_updates >= bad_updates_allowed) recover(result.gradient_norm);
    return;
  }
  state_.bad_updates = 0;
  ++state_.progress.updates;
  state_.shown.smoothed += result.smoothed;
  state_.shown.cross_entropy += result.cross_entropy;
  state_.shown.alignment += result.alignment;
  state_.shown.norms += result.gradient_norm;
  state_.shown.tokens += counts.target;
  ++state_.shown.updates;
}

// `counts`: a validation of valid-freq. The one at the end of a run is measured, but is no step of
// early stopping and decay, so that a training stopped and continued decides as an undisturbed one.
void Trainer::validate(bool counts) {
  const auto start = Clock::now();
  // One at the end was begun for lack of this time: a shorter one does not give it back.
  const double reserved = counts ? 0 : state_.validation_seconds;
  parts_.heartbeat.activity(fmt::format("validating update {}", state_.progress.updates));
  ValidationResult result;
  try {
    result = retry_after_trim(
        [&] { return parts_.validator->validate(tensors_.copy_weights(), state_.progress); });
  } catch (const Interrupted&) {
    state_.validation_due = counts;
    return;
  }
  const bool best = enter_validation(result.front(), counts, schedule_, state_);
  const double used = since(start);
  parts_.reporter.validation(state_.progress, result, best, state_.stalled, spec_.early_stopping,
                             used);
  if (counts) begin_average();
  state_.validation_seconds = std::max(reserved, since(start));
  if (best) save("best so far", true);
  state_.validation_seconds = std::max(reserved, since(start));
}

// As Merity et al. 2018: the average begins when the weights no longer improve.
void Trainer::begin_average() {
  if (spec_.average_after == 0 || state_.average_from >= 0 || state_.stalled < spec_.average_after)
    return;
  state_.average_from = optimizer_.steps();
  optimizer_.average_from(state_.average_from);
  state_.stalled = 0;
  parts_.reporter.event("average", state_.progress,
                        fmt::format("averaging the weights from update {} on (average-after)",
                                    grouped(state_.progress.updates)));
}

Figures Trainer::figures() const {
  Figures f;
  f.progress = state_.progress;
  f.seconds = seconds();
  f.seconds_left =
      seconds_left(spec_, after_, {at_start_, since(parts_.started)}, state_.progress, f.seconds);
  if (interval_.seconds > 0) {
    f.source_speed = static_cast<double>(interval_.source) / interval_.seconds;
    f.target_speed = static_cast<double>(interval_.target) / interval_.seconds;
  }
  const double tokens = static_cast<double>(std::max<std::int64_t>(state_.shown.tokens, 1));
  f.loss = state_.shown.smoothed / tokens;
  f.perplexity = std::exp(state_.shown.cross_entropy / tokens);
  if (state_.shown.alignment > 0) f.alignment = state_.shown.alignment / tokens;
  f.rate = rate_;
  f.norm =
      state_.shown.norms / static_cast<double>(std::max<std::int64_t>(state_.shown.updates, 1));
  return f;
}

}  // namespace nmt::train
