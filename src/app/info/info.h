#pragma once

#include "app/info/info_report.h"
#include "app/train/training_spec.h"
#include "config/option.h"
#include "config/settings.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-info.
struct InfoSpec {
  TrainingSpec training;        ///< settings of a model that does not exist yet
  bool from_directory = false;  ///< describe the model in training.train.model instead
  int labels = 0;               ///< tags or labels of a model that does not exist yet
  int sentence_length = 25;     ///< sentence length in tokens for the memory estimate
  bool sentence_length_given = false;
  bool architectures = false;  ///< describe all architectures instead of a model
  bool json = false;           ///< print JSON instead of text
};

/// The options of nmt-info: those of nmt-train, and its own.
std::vector<config::Option> fields(InfoSpec& spec);
/// Records which settings were given, including whether a model directory was named. Call it after
/// Settings::read().
void note_given(InfoSpec& spec, const config::Settings& settings);

/// Before --dump-config: leaves out what the task does not use. Nothing happens without that
/// option. Error (usage): a model directory, which has settings of its own.
void prepare_dump(InfoSpec& spec, config::Settings& settings);

/// Error (usage): a model, or a setting of one, on the command line of --architectures.
void refuse_settings_of_models(const config::Settings& settings);
/// Every architecture as text or JSON.
std::string architectures(const InfoSpec& spec);

/// The model to describe: its spec, vocabularies and precision. Sets values of spec.training that
/// nmt-train would choose. Errors (usage): a directory together with settings of another model;
/// unset values that depend on the training text; as ModelDirectory::open, check and
/// open_training_text.
ModelInfo find_model(InfoSpec& spec);

/// Size, cost and memory of the model as text or JSON.
std::string info(const InfoSpec& spec, ModelInfo model);

}  // namespace nmt::app
