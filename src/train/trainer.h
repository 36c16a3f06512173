#pragma once

#include "data/text_identity.h"
#include "model/trainable.h"
#include "train/batch_source.h"
#include "train/checkpoints/checkpoint_store.h"
#include "train/checkpoints/checkpoint_tensors.h"
#include "train/heartbeat.h"
#include "train/optimization/accumulator.h"
#include "train/optimization/optimizer.h"
#include "train/optimization/schedule.h"
#include "train/parallel/agreement.h"
#include "train/parallel/communicator.h"
#include "train/parallel/gradient_sums.h"
#include "train/reporter.h"
#include "train/stop_request.h"
#include "train/training_state.h"
#include "train/validator.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace nmt::train {

/// The training loop: batches -> gradients -> update -> display -> validate -> save, until a stop
/// rule holds. A resumed training is bit-identical to an uninterrupted one. With several ranks,
/// each computes its share of every batch; the sums of gradients, losses and tokens, and therefore
/// all decisions, are the same on all ranks.
class Trainer {
 public:
  /// The components of a training, which must outlive the trainer. Without a validator there is no
  /// validation and no early stopping.
  struct Parts {
    Trainable& model;
    BatchSource& source;
    Validator* validator = nullptr;
    CheckpointStore& store;
    Reporter& reporter;
    Heartbeat& heartbeat;
    /// Hash of the training files and of how they are batched: a position in others is worth
    /// nothing.
    std::string batching_hash;
    std::string development;  ///< hash of the development set: values on another do not compare
    std::string settings;     ///< YAML of all settings, stored in the state
    /// of this run, for max_minutes.
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    /// on several ranks store and validator are shared ones (shared.h).
    Communicator& communicator = alone();
    StopRequest stop = StopRequest();
    std::string alignments = "";      ///< hash of the links of guided alignment; "": not guided
    std::string relative_after = "";  ///< as in TrainingState
    bool extends = false;  ///< --after +N counts anew: early stopping starts to count anew too
    /// Options that the metric of the best value depends on, and that differ from the checkpoint's:
    /// "beam-size, valid-max-sentences". Values before do not compare.
    std::string changed_metric_options = "";
    TextIdentity text = {};  ///< of the training text
  };
  /// Errors (usage): invalid settings, as check() and Optimizer.
  Trainer(const TrainSpec& spec, const Parts& parts);

  /// Checks the settings that need no model, before anything is written.
  static void check(const TrainSpec& spec);

  /// Resumes from the newest checkpoint; returns false if there is none.
  bool resume();
  /// Trains until a stop rule holds or a StopRequest is pending, saves, and returns the status of
  /// the request.
  ExitStatus run();

  const TrainingState& state() const { return state_; }
  /// Why the training is finished (stop_rules.h); empty if it is not.
  std::string finished() const;
  /// The same as rank 0 decides, whose clock counts; all ranks must call it. Also empty if a stop
  /// came before the last validation was done, which run() does then.
  std::string finished_on_all_ranks();

 private:
  void dry_run();
  TrainPass pass(std::int64_t number) const;
  void update();
  UpdateCounts sum_over_ranks(UpdateCounts own);
  bool is_saved_state_final();
  Decision agree_on_all_ranks(bool over);
  void validate(bool counts);
  void begin_average();
  void save(const std::string& reason, bool best);
  void load();
  void adapt_validation();
  void discard_best(const std::string& why);
  void recover(double norm);
  Figures figures() const;
  double seconds() const;
  template <class Work>
  auto retry_after_trim(const Work& work);

  static constexpr int bad_updates_allowed = 3;  // in a row, before an older checkpoint is taken

  const TrainSpec spec_;
  Parts parts_;
  Schedule schedule_;
  std::unique_ptr<GradientSums> sums_;  // on several ranks
  Optimizer optimizer_;
  CheckpointTensors tensors_;
  Accumulator accumulator_;
  std::vector<Period> after_;
  Period display_every_, save_every_, validate_every_;
  std::string beginning_;  // position of the batch source at that point
  TrainingState state_;
  std::int64_t history_ = -1;  // log position to rewind to when resuming

  struct Interval {
    double seconds = 0;                   // computing time
    std::int64_t source = 0, target = 0;  // tokens
  };
  Interval interval_;  // since the last display

  Progress at_start_;                   // progress at the start of this run, for the speed
  double seconds_before_ = 0;           // wall time of previous runs
  double rate_ = 0;                     // of the last update
  double done_ = 0;                     // share of the training that is over, for the cool-down
  std::int64_t saved_update_ = -1;      // last update saved
  std::int64_t saved_validation_ = -1;  // last update validated, as saved
  bool saved_state_is_final_ = true;    // whether a stop rule holds for the state as saved
  int recoveries_ = 0;                  // to the newest checkpoint, since it is the newest
  std::int64_t resumed_update_ = -1;    // of the checkpoint that this run goes on from
  bool was_split_ = false;  // a batch was split for lack of memory since the last update
};

}  // namespace nmt::train
