#pragma once

#include "app/distill/distill.h"
#include "app/distill/work_directory.h"

#include <functional>
#include <string>
#include <vector>

namespace nmt::app {

/// What the steps of nmt-distill share.
struct Distillation {
  const DistillSpec& spec;
  const WorkDirectory& work;
  const std::vector<std::string>& command;
};

/// What a run does with a step that is not off.
struct StepState {
  enum class Kind { finished, refused, begins, continues };
  Kind kind = Kind::begins;
  std::string why;  ///< refused: the settings that differ; begins, continues: a missing result
};

/// Removes what a step cannot continue from, and records its settings as those of an unfinished
/// step. Later calls do nothing.
using Begin = std::function<void()>;

/// One step. `settings`: what its result depends on. `run` opens its inputs, calls `begin`, does
/// the work, returns ok or the status of an interrupted training, and fills `result`; interrupted,
/// it continues in the next call.
struct Step {
  using Json = nlohmann::ordered_json;
  DistillStep name;
  Json (*settings)(const Distillation&);
  ExitStatus (*run)(const Distillation&, const Begin& begin, Json& result);
  std::string (*summary)(const Json& result);
  /// Of steps with a file per part: the member of the result that counts all lines; null: no parts.
  const char* lines = nullptr;
  /// Whether the settings switch the step off; null: never.
  bool (*is_off)(const DistillSpec&) = nullptr;
  /// The state of results that are unfinished or have other settings; null: the step refuses other
  /// settings.
  StepState (*resume_state)(const Distillation&) = nullptr;
};

/// Error (usage): the step has results of other settings; `difference` names them.
[[noreturn]] void refuse_other_settings(DistillStep step, const std::string& difference);

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
