#include "app/common_options.h"

#include "core/error.h"
#include "core/log.h"

#include <utility>

namespace nmt::app {
namespace {

config::Option output(std::string* path, std::string help, const char* metavar) {
  return config::Option("output", path, std::move(help)).alias({"o"}).meta(metavar).written();
}

}  // namespace

config::Option output_option(std::string* path, const std::string& what) {
  return output(path, "output file for " + what, "FILE").unset_means("standard output");
}

config::Option model_option(std::string* path, const std::string& help) {
  return config::Option("model", path, help).alias({"m"}).meta("DIR");
}

config::Option model_output_option(std::string* path) {
  return output(path, "new model directory", "DIR");
}

void report_idle_options(const std::string& of_files, const std::string& typed) {
  if (!of_files.empty()) log::warn("options without effect: {}", of_files);
  if (!typed.empty()) fail(ExitStatus::usage, "options without effect: {}; leave them out", typed);
}

}  // namespace nmt::app
