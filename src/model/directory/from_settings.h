#pragma once

#include "core/error.h"

#include <string>

namespace nmt {

/// The model that `make` makes of the settings of a directory. Error (data), which names the file:
/// the settings contradict each other.
template <class Make>
auto from_settings(const std::string& directory, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.status() != ExitStatus::usage) throw;
    fail(ExitStatus::data, "{}/config.json: {}", directory, error.what());
  }
}

}  // namespace nmt
