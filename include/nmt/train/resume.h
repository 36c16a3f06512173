#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt::train {

/// A setting that is not what the training was started with.
struct ChangedSetting {
  std::string name, before, now;  ///< as on the command line
};

/// Why a resumed training cannot take another value of the setting, or "" when it can. Only what gives the saved tensors their
/// shape or meaning, or would train on development pairs, is refused.
std::string refusal(const ChangedSetting& change);

/// Says every change, one line each, and fails (usage) with the refused ones, all in one line.
void announce_changes(const std::vector<ChangedSetting>& changes, std::string_view model);

}  // namespace nmt::train
