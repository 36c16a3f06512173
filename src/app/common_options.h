#pragma once

#include "config/option.h"

#include <string>
#include <vector>

namespace nmt::app {

using config::joined;

/// --output: "output file for `what`", by default standard output.
config::Option output_option(std::string* path, const std::string& what);
/// --model: one model directory.
config::Option model_option(std::string* path, const std::string& help);

/// --output: a new model directory.
config::Option model_output_option(std::string* path);

}  // namespace nmt::app
