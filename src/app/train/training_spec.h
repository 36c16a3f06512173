#pragma once

#include "config/option.h"
#include "config/settings.h"
#include "config/specs.h"

#include <set>
#include <string>
#include <vector>

namespace nmt::app {

/// All that a training needs to know.
struct TrainingSpec {
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  SearchSpec search;  ///< of validation
  ComputeSpec compute = float32_compute();

  /// Names of the settings that the caller chose. What else a training in the model directory was
  /// started with holds on; and there is no warning about them where they have no effect.
  std::set<std::string> given;

  bool is_given(const std::string& name) const { return given.contains(name); }
  /// Whether a resumed training keeps the option's earlier value.
  bool keeps(const config::Option& option) const;
  /// Whether one of the settings says which embeddings are tied; if none does, they are chosen.
  bool ties_given() const;
};

/// The options of nmt-train, bound to the spec; their initial values are those of a fresh one.
std::vector<config::Option> fields(TrainingSpec& spec);
/// Takes over which of its settings a program was given. After Settings::read().
void note_given(TrainingSpec& spec, const config::Settings& settings);

/// Errors (usage): settings that contradict each other.
void check(const TrainingSpec& spec);
/// Warns of settings that were given another value than their default and have no effect beside
/// the other settings.
void warn_without_effect(const TrainingSpec& spec);

/// All settings as YAML, as a checkpoint keeps them.
std::string yaml_of(const TrainingSpec& spec);

}  // namespace nmt::app
