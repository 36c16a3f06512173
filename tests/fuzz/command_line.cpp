#include "config/fields.h"
#include "config/settings.h"
#include "tests/fuzz/target.h"

#include <vector>

// Command-line arguments, one per line. --config is removed, so that no file is opened.
void nmt::fuzz::command_line(std::string_view bytes) {
  std::vector<std::string> arguments;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    arguments.emplace_back(bytes.substr(0, end));
    bytes = end == std::string_view::npos ? "" : bytes.substr(end + 1);
    if (arguments.back().starts_with("-c") || arguments.back().starts_with("--c"))
      arguments.pop_back();
  }
  read([&] {
    ModelSpec model;
    DataSpec data;
    TrainSpec train;
    ComputeSpec compute;
    config::Settings settings("fuzz", "", "");
    settings.add(config::fields(model))
        .add(config::fields(data))
        .add(config::fields(train))
        .add(config::training_fields(compute))
        .positionals({"train-sets"});
    settings.read(arguments);
    config::check(data);
    config::check(model, data);
    if (settings.asks_help()) settings.help();  // as programs do; it takes longer than the rest
  });
}

NMT_FUZZ_TARGET(command_line)
