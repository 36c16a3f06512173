#pragma once

namespace nmt::library {

/// Sets the log level to warning, once, unless the application has called set_log_level().
void use_default_log_level();

}  // namespace nmt::library
