#include "config/fields.h"
#include "config/settings.h"
#include "tests/fuzz/target.h"

// A settings file, read as by --config, written and read again.
void nmt::fuzz::config_yaml(std::string_view bytes) {
  struct Specs {
    ModelSpec model;
    DataSpec data;
    TrainSpec train;
    SearchSpec search;
    ComputeSpec compute;
    config::Settings settings{"fuzz", "", ""};
    Specs() {
      settings.add(config::fields(model))
          .add(config::fields(data))
          .add(config::fields(train))
          .add(config::validation_fields(search))
          .add(config::training_fields(compute));
    }
  };
  read([&] {
    Specs specs;
    specs.settings.read_yaml(std::string(bytes), "fuzz.yaml");
    specs.settings.read({});
    const std::string dump = specs.settings.yaml();
    Specs again;
    again.settings.read_yaml(dump, "dump.yaml");
    again.settings.read({});
    if (again.settings.yaml() != dump)
      throw std::logic_error("settings changed after a round trip through --dump-config:  " + dump);
  });
}

NMT_FUZZ_TARGET(config_yaml)
