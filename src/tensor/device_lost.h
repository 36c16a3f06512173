#pragma once

#include "nmt/error.h"

#include <string>

namespace nmt {

/// A GPU that fails all further calls of this process, as after an invalid address or an
/// uncorrectable memory error. Another process may be able to use it.
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& message) : Error(ExitStatus::failed, message) {}
};

}  // namespace nmt
