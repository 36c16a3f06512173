#pragma once

#include "config/option.h"
#include "config/settings.h"
#include "config/specs.h"
#include "text/noise.h"

#include <set>
#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-train.
struct TrainingSpec {
  ModelSpec model;
  DataSpec data;
  NoiseSpec noise;  ///< of the training text
  TrainSpec train;
  SearchSpec search;  ///< of validation
  ComputeSpec compute;

  /// Names of the options that the caller set. A resumed training keeps its previous values of the
  /// others, and idle options that were not set cause no warning.
  std::set<std::string> given;
  std::set<std::string> typed;   ///< those of `given` that the command line sets
  std::set<std::string> spread;  ///< those of `given` that a shorthand sets, such as --unit

  /// How to start a new training here; part of error messages.
  std::string start_anew = "start anew with no-reload or another model";

  bool is_given(const std::string& name) const { return given.contains(name); }
  /// Whether a resumed training keeps the option's earlier value.
  bool keeps(const config::Option& option) const;
  /// Whether an option about tied embeddings is set; otherwise nmt-train chooses.
  bool ties_given() const;
  /// Whether a unit is set, of either side; otherwise nmt-train chooses.
  bool unit_given() const;
  /// Whether attention is trained on given alignments.
  bool is_guided() const {
    return data.guided_alignment != "none" && train.guided_alignment_weight > 0;
  }
};

/// The options of nmt-train, bound to the spec; their initial values are those of a fresh one.
std::vector<config::Option> fields(TrainingSpec& spec);
/// Records which settings were given. Call it after Settings::read().
void note_given(TrainingSpec& spec, const config::Settings& settings);

/// Errors (usage): settings that contradict each other.
void check(const TrainingSpec& spec);
/// Warns about settings that differ from their defaults but have no effect with the other settings.
/// Typed settings of the model are an error (usage): it would not be the model that was asked for.
/// `idle`: the options without effect in the task.
void check_effects(const TrainingSpec& spec, const std::vector<std::string>& idle = {});

/// All settings as YAML, as stored in checkpoints.
std::string yaml_of(const TrainingSpec& spec);
/// The settings that must be equal on all ranks.
std::string yaml_of_all_ranks(const TrainingSpec& spec);

}  // namespace nmt::app
