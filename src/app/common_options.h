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

/// Warns about options of configuration files that have no effect: such a file may serve several
/// programs and models. Error (usage): options of the command line that have none. Both are "name
/// (why), name (why)", or "".
void report_idle_options(const std::string& of_files, const std::string& typed);

}  // namespace nmt::app
