#pragma once

#include "app/models/open_models.h"
#include "config/option.h"
#include "nmt/translator.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nmt::library {

/// The values of the options that apply to loaded models, by name.
using LoadingSettings = std::map<std::string, std::vector<std::string>>;

/// Models that translators and scorers share, and the lock that lets one call at a time use them.
struct SharedModels {
  std::shared_ptr<app::OpenModels> models;
  std::vector<std::string> directories;  ///< absolute
  /// Absolute directories of all models, language models included, which no call may write.
  std::vector<std::string> inputs;
  LoadingSettings settings;  ///< that they were loaded with
  std::timed_mutex one_call;

  /// Locks one_call. Error (interrupted): `stop` has returned true while another call ran.
  std::unique_lock<std::timed_mutex> lock_call(const ShouldStop& stop);
};

/// `options`: those of nmt-translate or nmt-score.
LoadingSettings loading_settings(std::vector<config::Option> options);
/// Gives the loaded values to those of the `asked` options that have their `defaults`. Error
/// (usage): another value is asked for; the message names the first.
void adopt_loading_settings(const LoadingSettings& loaded, std::vector<config::Option> asked,
                            const LoadingSettings& defaults);

}  // namespace nmt::library
