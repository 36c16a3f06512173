#pragma once

#include "core/error.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace nmt {

/// Status and message of the error that `action` raises.
template <class Action>
std::pair<ExitStatus, std::string> error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return {error.status(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {ExitStatus::ok, ""};
}

}  // namespace nmt
