#pragma once

#include "config/period.h"
#include "data/text_identity.h"
#include "train/optimization/schedule.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace nmt::train {

/// Sums since the last display line; part of the state, so that a resumed run prints the same
/// figures.
struct DisplaySums {
  double smoothed = 0, cross_entropy = 0;  ///< nats over target tokens
  double alignment = 0;                    ///< cross-entropy of guided alignment, nats
  double norms = 0;                        ///< gradient norms
  std::int64_t updates = 0, tokens = 0;
};

/// All of a training that is no tensor.
struct TrainingState {
  Progress progress;
  double epochs_before = 0;          ///< of the progress, before the batch source was restarted
  std::int64_t batches = 0;          ///< batches ever computed: the counter dropout depends on
  std::int64_t optimizer_steps = 0;  ///< Adam's t
  double seconds = 0;                ///< wall time, over all runs
  double validation_seconds = 0;     ///< of the last validation and save
  Stalls stalls;
  std::int64_t stalled = 0;        ///< validations without progress in a row
  std::optional<double> best;      ///< best value of the first metric
  std::optional<double> best_due;  ///< of the validations due by valid-freq
  std::int64_t best_update = 0;
  std::string best_metric;             ///< name of the first metric at the last validation
  std::int64_t validated_update = -1;  ///< last update validated
  bool validation_due = false;     ///< a signal came before the validation of this update was done
  std::int64_t average_from = -1;  ///< optimizer step of Optimizer::average_from(); -1: not yet
  int bad_updates = 0;             ///< updates in a row that were not finite
  DisplaySums shown;
  std::string position;  ///< of the batch source
  /// What the position belongs to: a hash of the training files and of how they are batched.
  std::string batching_hash;
  std::string development;  ///< what the best value belongs to: a hash of the development set
  std::string alignments;   ///< hash of the last links of guided alignment; "": none or not known
  /// Bytes of the training's log (Reporter::position()) when this was saved; -1: not known.
  std::int64_t history = -1;
  std::string settings;  ///< YAML of all settings, choices included
  /// --after as it was given where it is relative, such as "+10e"; the settings have the absolute
  /// one. Else "".
  std::string relative_after;

  /// The epochs that are counted on when a training resumes with this corpus: all if it is the
  /// same; the completed ones if only the batches differ, since the source then starts at its
  /// beginning; none of other text.
  double epochs_kept(const std::string& now) const;

  /// Replaces the hash of the training text in batching_hash by the current one, if it is that of
  /// version 0.2.0 of the same text.
  void update_text_hash(const TextIdentity& text);

  /// Whether the last update has been validated, and no validation was interrupted.
  bool is_validated() const { return !validation_due && validated_update == progress.updates; }

  std::string to_json() const;
  /// Error (data): no such state; `name` is for the message.
  static TrainingState from_json(const std::string& text, const std::string& name);
};

}  // namespace nmt::train
