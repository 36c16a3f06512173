#pragma once

#include "app/open_models.h"
#include "config/option.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nmt::library {

/// Models that translators and scorers share, and the lock that lets one call at a time use them.
struct SharedModels {
  std::shared_ptr<app::OpenModels> models;
  std::vector<std::string> directories;
  std::vector<std::string> settings;  ///< loading_settings() that they were loaded with
  std::mutex one_call;
};

/// The values of the options that apply to loaded models, as "name: value". `options`: those of
/// nmt-translate or nmt-score.
std::vector<std::string> loading_settings(std::vector<config::Option> options);
/// Error (usage): the settings differ; the message names the first.
void require_same_loading(const std::vector<std::string>& loaded,
                          const std::vector<std::string>& asked);

}  // namespace nmt::library
