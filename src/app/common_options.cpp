#include "app/common_options.h"

namespace nmt::app {

std::vector<config::Option> joined(std::initializer_list<std::vector<config::Option>> lists) {
  std::vector<config::Option> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

config::Option output_option(std::string* path, const std::string& what) {
  return config::Option("output", path, "where " + what + "; standard output when not given")
      .alias({"o"})
      .meta("FILE");
}

config::Option model_option(std::string* path, const std::string& help) {
  return config::Option("model", path, help).alias({"m"}).meta("DIR");
}

config::Option model_output_option(std::string* path) {
  return config::Option("output", path, "a new model directory, which appears whole or not at all")
      .alias({"o"})
      .meta("DIR");
}

}  // namespace nmt::app
