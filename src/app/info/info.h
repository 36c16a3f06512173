#pragma once

#include "app/info/info_report.h"
#include "app/train/training_spec.h"
#include "config/option.h"
#include "config/settings.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Which model to describe, and how.
struct InfoSpec {
  TrainingSpec training;        ///< the settings of a model that does not exist yet
  bool from_directory = false;  ///< the model of training.train.model instead
  int sentence_length = 25;     ///< tokens of a sentence that memory is estimated for
  bool architectures = false;   ///< describe all architectures, and no model
  bool json = false;            ///< JSON in place of text
};

/// The options of nmt-info: those of nmt-train, and its own.
std::vector<config::Option> fields(InfoSpec& spec);
/// Takes over which settings a program was given, and thereby whether a model directory was named.
/// After Settings::read().
void note_given(InfoSpec& spec, const config::Settings& settings);

/// Every architecture as text or JSON.
std::string architectures(const InfoSpec& spec);

/// The model that is meant: its spec, vocabularies and precision. Completes spec.training where the
/// settings leave something to be chosen. Errors (usage): a directory and settings of another
/// model; settings that only a training text could complete; as ModelDirectory::open, check and
/// open_training_text.
ModelInfo find_model(InfoSpec& spec);

/// Size, cost and memory of that model as text or JSON.
std::string info(const InfoSpec& spec, ModelInfo model);

}  // namespace nmt::app
