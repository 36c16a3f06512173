#include "app/train/training_spec.h"

#include "app/common_options.h"
#include "app/train/idle_rules.h"
#include "config/fields.h"
#include "core/error.h"
#include "nn/unit_registry.h"
#include "text/utf8.h"

#include <algorithm>
#include <utility>

namespace nmt::app {

bool TrainingSpec::keeps(const config::Option& option) const {
  return !option.kept_unless.empty() &&
         std::none_of(option.kept_unless.begin(), option.kept_unless.end(),
                      [&](const std::string& name) { return is_given(name); });
}

bool TrainingSpec::ties_given() const {
  ModelSpec fresh;
  std::vector<config::Option> options = config::fields(fresh);
  return !keeps(config::named(options, "tied-embeddings"));
}

bool TrainingSpec::unit_given() const {
  return is_given("unit") || is_given("enc-cell") || is_given("dec-cell");
}

std::vector<config::Option> fields(TrainingSpec& spec) {
  std::vector<config::Option> options =
      joined({config::fields(spec.model), config::fields(spec.data), config::fields(spec.noise),
              config::fields(spec.train), config::validation_fields(spec.search),
              config::training_fields(spec.compute)});
  for (config::Option& option : options)
    if (option.name == "unit" || option.name == "enc-cell" || option.name == "dec-cell")
      option.words = unit_names();
  add_idle_rules(options, spec);
  return options;
}

void note_given(TrainingSpec& spec, const config::Settings& settings) {
  for (const std::string& name : settings.names()) {
    if (settings.is_set(name)) spec.given.insert(name);
    if (settings.is_typed(name)) spec.typed.insert(name);
    if (settings.is_by_shorthand(name)) spec.spread.insert(name);
  }
}

// Names are stored with the settings, as JSON.
void check_names(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  for (const config::Option& option : fields(copy))
    for (const std::string& value : config::values(option))
      if (!is_valid_utf8(value))
        fail(ExitStatus::usage, "{}: {} is not UTF-8; rename the file", option.name,
             config::shown(value));
}

void check(const TrainingSpec& spec) {
  check_names(spec);
  config::check(spec.data, spec.model.task);
  config::check(spec.noise);
  config::check(spec.search);
  config::check(spec.model, spec.data);
}

void check_effects(const TrainingSpec& spec, const std::vector<std::string>& idle_names) {
  TrainingSpec copy = spec;
  std::vector<config::Option> options = fields(copy);
  std::string idle, typed;
  const auto is_of_task = [&idle_names](const std::string& name) {
    return std::find(idle_names.begin(), idle_names.end(), name) == idle_names.end();
  };
  for (const config::Option& option : options) {
    if (!spec.is_given(option.name)) continue;
    const auto is_changed = [&options](const std::string& name) {
      const config::Option& other = config::named(options, name);
      return config::values(other) != config::initial_values(other);
    };
    if (std::any_of(option.sets.begin(), option.sets.end(), is_changed) &&
        std::none_of(option.sets.begin(), option.sets.end(), is_of_task)) {
      idle += fmt::format("{}{} (task is {})", idle.empty() ? "" : ", ", option.name,
                          name_of(spec.model.task));
      continue;
    }
    std::string why = option.idle_rule ? option.idle_rule() : "";
    // --unit also sets the unit of a side that the task lacks.
    if (!spec.spread.contains(option.name) && !is_of_task(option.name))
      why = fmt::format("task is {}", name_of(spec.model.task));
    if (why.empty() || config::values(option) == config::initial_values(option)) continue;
    const bool makes_model =
        option.role == config::Role::shape || option.role == config::Role::initialization;
    std::string& names = makes_model && spec.typed.contains(option.name) ? typed : idle;
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", option.name, why);
  }
  report_idle_options(idle, typed);
}

std::string yaml_of(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(copy));
  return settings.stored_yaml();
}

std::string yaml_of_all_ranks(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(copy));
  return settings.yaml_of_all_ranks();
}

}  // namespace nmt::app
