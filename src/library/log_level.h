#pragma once

namespace nmt::library {

/// Lowers the log to warnings, once, where the application has not called set_log_level().
void use_default_log_level();

}  // namespace nmt::library
