#pragma once

#include "config/specs.h"

#include <string>
#include <vector>

namespace nmt::train {

/// A setting that differs from the one the training was started with.
struct ChangedSetting {
  std::string name, before, now;  ///< as on the command line
};

/// Why a resumed training must not change the setting; "" if it may. Refused are changes to the
/// shape or meaning of saved tensors, and those that would train on development pairs. `optimizer`:
/// the current one; `holds_out`: the development set is part of the training text.
std::string refusal(const ChangedSetting& change, UpdateRule optimizer, bool holds_out);

/// Logs every change, one per line. Error (usage): some changes are refused; lists them in one
/// line.
void announce_changes(const std::vector<ChangedSetting>& changes, const TrainSpec& spec,
                      const DataSpec& data);

}  // namespace nmt::train
