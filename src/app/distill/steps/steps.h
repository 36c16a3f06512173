#pragma once

#include "app/distill/distill.h"
#include "app/distill/work_directory.h"

#include <string>
#include <vector>

namespace nmt::app {

/// What the steps of nmt-distill share.
struct Distillation {
  const DistillSpec& spec;
  const WorkDirectory& work;
  const std::vector<std::string>& command;
};

/// One step. `settings`: what its result depends on. `run` does the work, returns ok or the status
/// of an interrupted training, and fills `result`; interrupted, it continues in the next call.
struct Step {
  using Json = nlohmann::ordered_json;
  DistillStep name;
  Json (*settings)(const Distillation&);
  ExitStatus (*run)(const Distillation&, Json& result);
  std::string (*summary)(const Json& result);
  /// Whether `run` handles a result of other settings: nmt-train does.
  bool accepts_changes = false;
  /// Whether the settings switch the step off; null: never.
  bool (*is_off)(const DistillSpec&) = nullptr;
};

extern const Step translate_step, select_step, filter_step, align_step, train_step, shortlist_step,
    convert_step, check_step;

/// The published weights of a model directory, wherever it lies: "update 5000, 00c0ffee", with the
/// CRC-32 of the file.
std::string identity(const std::string& model);
/// identity() of each.
std::vector<std::string> identities(const std::vector<std::string>& models);
/// Number of lines and hash of a text: "29000 lines, 00c0ffee00c0ffee".
std::string text_identity(const std::string& path);
/// How the student searches: the options of validation by name.
nlohmann::ordered_json search_settings(SearchSpec search);

}  // namespace nmt::app
