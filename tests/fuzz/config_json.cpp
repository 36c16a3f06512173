#include "config/fields.h"
#include "config/json.h"
#include "core/nlohmann.h"
#include "tests/fuzz/target.h"

// The settings stored in a model directory.
void nmt::fuzz::config_json(std::string_view bytes) {
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  if (json.is_discarded()) return;
  const auto all = [&]<class Spec>(Spec spec) {
    read([&] {
      config::from_json(json, config::fields(spec), "config.json");
      Spec again;
      const auto stored = config::to_json(config::fields(spec));
      config::from_json(stored, config::fields(again), "config.json");
      if (config::to_json(config::fields(again)) != stored)
        throw std::logic_error("settings changed after a round trip");
    });
  };
  all(ModelSpec());
  all(DataSpec());
  all(TrainSpec());
  all(SearchSpec());
}

NMT_FUZZ_TARGET(config_json)
