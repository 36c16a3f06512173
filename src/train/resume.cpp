#include "train/resume.h"

#include "core/error.h"
#include "core/log.h"

namespace nmt::train {

std::string refusal(const config::Option& option, const std::string& before, const std::string& now,
                    bool holds_out) {
  using config::Role;
  switch (option.role) {
    case Role::shape: return "the model depends on it";
    case Role::initialization: return "the weights were initialized with it";
    case Role::vocabulary: return "the embeddings depend on the vocabulary";
    case Role::hold_out:
      if (holds_out) return "it decides which pairs are held out";
      break;
    case Role::procedure:
    case Role::location:
    case Role::compute: break;
  }
  return option.change_rule ? option.change_rule(before, now) : "";
}

void announce_changes(const std::vector<ChangedSetting>& changes, const std::string& model,
                      const std::string& start_anew) {
  std::string refused;
  for (const ChangedSetting& change : changes) {
    if (change.refusal.empty())
      log::info("override {}: {} -> {}", change.name, change.before, change.now);
    else
      refused += fmt::format("{}{} is {} there, not {} ({})", refused.empty() ? "" : "; ",
                             change.name, change.before, change.now, change.refusal);
  }
  if (!refused.empty())
    fail(ExitStatus::usage, "{}: cannot go on with other settings: {}; revert them, or {}", model,
         refused, start_anew);
}

}  // namespace nmt::train
