#pragma once

#include <functional>

namespace nmt::tools {

/// Runs the body of a program and returns its exit status: the one place that catches. An error becomes one line on standard
/// error, without a stack trace, and the status of its kind (ExitStatus).
int run_program(const std::function<int()>& body);

}  // namespace nmt::tools
