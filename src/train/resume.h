#pragma once

#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::train {

/// A setting that is not what the training was started with.
struct ChangedSetting {
  std::string name, before, now;  ///< as on the command line
};

/// Why a resumed training cannot take another value of the setting, or "" when it can. Only what
/// gives the saved tensors their shape or meaning, or would train on development pairs, is refused.
/// `optimizer`: the one now; `holds_out`: the development set is a part of the training text.
std::string refusal(const ChangedSetting& change, UpdateRule optimizer, bool holds_out);

/// Says every change, one line each, and fails (usage) with the refused ones, all in one line.
void announce_changes(const std::vector<ChangedSetting>& changes, const TrainSpec& spec,
                      const DataSpec& data);

}  // namespace nmt::train
