#include "app/train/training_spec.h"

#include "app/common_options.h"
#include "config/fields.h"
#include "config/period.h"
#include "core/error.h"
#include "core/log.h"
#include "nn/unit_registry.h"

#include <algorithm>
#include <array>

namespace nmt::app {
namespace {

// A setting without effect where the condition holds.
struct Idle {
  const char* name;
  bool holds;
  std::string why;
};

std::vector<Idle> idle_settings(const TrainingSpec& spec) {
  const TrainSpec& train = spec.train;
  const DataSpec& data = spec.data;
  const std::string schedule = fmt::format("schedule is {}", name_of(train.schedule));
  const bool has_warmup = static_cast<bool>(parse_period(train.lr_warmup, "lr-warmup")),
             has_vocabs = !data.vocabs.empty();
  return {
      {"lr-warmup", train.schedule == RateSchedule::rnmt && has_warmup,
       schedule + ", which has its own"},
      {"lr-decay-inv-sqrt", train.schedule != RateSchedule::inv_sqrt, schedule},
      {"rnmt-schedule", train.schedule != RateSchedule::rnmt, schedule},
      {"lr-decay-strategy", train.lr_decay == 0, "lr-decay is 0"},
      {"lr-decay-start", train.lr_decay == 0, "lr-decay is 0"},
      {"dim-vocabs", has_vocabs, "vocabs are given"},
      {"joint-vocab", has_vocabs, "vocabs are given"},
      {"sentencepiece-max-lines", has_vocabs, "vocabs are given"},
      {"valid-lines", !data.valid_sets.empty(), "valid-sets are given"},
  };
}

}  // namespace

bool TrainingSpec::ties_given() const {
  return is_given("tied-embeddings") || is_given("tied-embeddings-src") ||
         is_given("tied-embeddings-all");
}

std::vector<config::Option> fields(TrainingSpec& spec) {
  std::vector<config::Option> options =
      joined({config::fields(spec.model), config::fields(spec.data), config::fields(spec.train),
              config::validation_fields(spec.search), config::training_fields(spec.compute)});
  for (config::Option& option : options)
    if (option.name == "unit" || option.name == "enc-cell" || option.name == "dec-cell")
      option.words = unit_names();
  return options;
}

void note_given(TrainingSpec& spec, const config::Settings& settings) {
  for (const std::string& name : settings.names())
    if (settings.is_set(name)) spec.given.insert(name);
}

void check(const TrainingSpec& spec) {
  config::check(spec.data);
  config::check(spec.search);
  config::check(spec.model, spec.data);
}

void warn_without_effect(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  const std::vector<config::Option> options = fields(copy);
  std::string idle;
  for (const Idle& setting : idle_settings(spec)) {
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const auto& known) { return known.name == setting.name; });
    NMT_CHECK(option != options.end(), "there is no option --{}", setting.name);
    if (setting.holds && spec.is_given(setting.name) && config::values(*option) != option->initial)
      idle += fmt::format("{}{} ({})", idle.empty() ? "" : ", ", setting.name, setting.why);
  }
  if (!idle.empty()) log::warn("set, but without effect here: {}", idle);
}

std::string yaml_of(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(copy));
  return settings.yaml();
}

}  // namespace nmt::app
