#pragma once

#include "config/period.h"
#include "config/specs.h"

namespace nmt::train {

/// The effect of validations on the learning rate so far; part of the training state.
struct Stalls {
  /// Times a run of validations without progress reached a multiple of lr_decay_start's number
  /// while lr_decay_strategy decayed by it.
  std::int64_t decays = 0;
  double first_epoch = -1;  ///< epochs done when that first happened, or -1
  /// Returns to an older checkpoint after updates that were not finite.
  std::int64_t recoveries = 0;
};

/// The learning rate, a pure function of the progress and the stalls.
///   rate = max(learn_rate * shape * lr_decay^(decay steps), lr_floor) * warm-up * cool-down
///          * 1/2^(recoveries)
/// warm-up: min(1, progress / lr_warmup), in the unit of lr_warmup (Marian's --lr-warmup). Not with
/// rnmt+, which has its own.
/// shape:
///   constant  1
///   inv-sqrt  sqrt(d / max(d, progress)), d = lr_decay_inv_sqrt or, if empty, lr_warmup (Marian's
///             --lr-decay-inv-sqrt; Vaswani et al. 2017, eq. 3); 1 if d is 0
///   rnmt+     min(1 + t(n-1)/(np), n, n(2n)^((s-nt)/(e-s))), t the number of updates (Chen et al.
///             2018, section 3.3, which holds 5e-5 after the decay: lr_floor)
/// cool-down: min(1, (1 - done) / lr_cooldown), `done` the share of the training that is over: a
///             linear fall to 0 at its end (Zhai et al. 2022, section 3.5; Haegele et al. 2024).
/// decay steps (lr_decay > 0), by lr_decay_strategy with Marian's names and meanings:
///   epoch          at the start of every epoch from lr_decay_start[0] on, but not before the
///                  second: with 4, epoch 4 is the first with a decayed rate (Marian's
///                  Scheduler::actAfterEpoch)
///   stalled        whenever the number of consecutive stalled validations reaches a multiple of
///                  lr_decay_start[1]
///   epoch+stalled  as `epoch`, and at the start of every epoch after lr_decay_start[1]
///                  consecutive stalled validations
/// A single number in lr_decay_start serves either strategy. Of two, `stalled` reads the second,
/// Marian's the first.
class Schedule {
 public:
  /// Errors (usage): a value is out of range.
  explicit Schedule(const TrainSpec& spec);

  /// `done`: the share of the training that is over, from 0 to 1; only a cool-down asks for it.
  double rate(const Progress& progress, const Stalls& stalls, double done = 0) const;
  bool cools_down() const { return cooldown_ > 0; }
  /// Whether this number of consecutive stalled validations is a decay step of `stalled`, or the
  /// start of `epoch+stalled`. Never without a decay, so that one that begins at a resume has no
  /// steps behind it.
  bool stall_counts(std::int64_t stalled) const {
    return decay_ > 0 && at_stalls_ && stalled > 0 && stalled % stall_start_ == 0;
  }

 private:
  double shape(const Progress& progress) const;
  double decay_steps(const Progress& progress, const Stalls& stalls) const;

  double base_;
  RateSchedule shape_;
  Period warmup_, inv_sqrt_;
  double n_ = 1, p_ = 1, s_ = 0, e_ = 1;  // of RNMT+
  double decay_, floor_, cooldown_;
  bool at_epochs_, at_stalls_;
  std::int64_t epoch_start_, stall_start_;
};

}  // namespace nmt::train
