#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::train {

/// A setting that is not what the training was started with.
struct ChangedSetting {
  std::string name, before, now;  ///< as on the command line
  std::string refusal;            ///< why the training cannot continue with it; "": it can
};

/// Why a resumed training cannot take another value of the option, or "" when it can: by the
/// option's role and rule. Only what gives the saved tensors their shape or meaning, or would train
/// on development pairs, is refused. `holds_out`: the development set is a part of the training
/// text.
std::string refusal(const config::Option& option, const std::string& before, const std::string& now,
                    bool holds_out);

/// Logs every change, one line each. Error (usage): the refused ones, all in one line that names
/// the model directory and how to start anew.
void announce_changes(const std::vector<ChangedSetting>& changes, const std::string& model,
                      const std::string& start_anew);

}  // namespace nmt::train
