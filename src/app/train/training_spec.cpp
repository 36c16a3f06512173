#include "app/train/training_spec.h"

#include "app/common_options.h"
#include "config/fields.h"
#include "core/error.h"
#include "model/architecture.h"
#include "model/encoder.h"
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
  // Why nothing depends on an option, unless one of the units satisfies the condition.
  const auto unless_a_unit = [&spec](const char* why, bool (*condition)(const kernels::Unit&)) {
    return [&model = spec.model, why, condition]() -> std::string {
      const std::vector<std::string> units = units_of(model);
      const bool has_one = std::any_of(units.begin(), units.end(), [&](const std::string& unit) {
        return condition(*unit_settings(model, unit).unit);
      });
      return has_one ? "" : fmt::format(fmt::runtime(why), units.back());
    };
  };
  config::named(options, "enc-cell").idle_rule = [&spec] {
    // --unit also sets the unit of a side that has none.
    return encoder_attends(spec.model) && !spec.spread.contains("enc-cell")
               ? fmt::format("encoder-mixer is {}", name_of(spec.model.block.encoder_mixer))
               : "";
  };
  for (const char* name : {"state-heads", "state-width"})
    config::named(options, name).idle_rule =
        unless_a_unit("unit {} has no matrix state",
                      [](const auto& unit) { return unit.matrix_state != nullptr; });
  config::named(options, "positions").idle_rule =
      unless_a_unit("unit {} has no position vectors",
                    [](const auto& unit) { return unit.position_vectors > 0; });
  // The first reason of two rules.
  const auto either = [](config::IdleRule one, config::IdleRule other) {
    return [one = std::move(one), other = std::move(other)] {
      const std::string why = one ? one() : "";
      return why.empty() && other ? other() : why;
    };
  };
  config::IdleRule& bias = config::named(options, "bias").idle_rule;
  bias = either(std::move(bias), unless_a_unit("unit {} always has one", [](const auto& unit) {
                  return !unit.bias || unit.has_recurrent_product();
                }));
  for (const char* name : {"gate-init", "gate-bias", "gate-steps"}) {
    config::IdleRule& rule = config::named(options, name).idle_rule;
    rule = either(unless_a_unit("gate-init sets no bias of unit {}",
                                [](const auto& unit) { return !unit.gate_biases.empty(); }),
                  std::move(rule));
  }
  for (const char* name : {"dropout-state", "dropout-weights"}) {
    config::IdleRule& rule = config::named(options, name).idle_rule;
    rule = either(std::move(rule),
                  unless_a_unit("unit {} has no recurrent product",
                                [](const auto& unit) { return unit.has_recurrent_product(); }));
  }
  for (const std::string& name : config::block_option_names()) {
    config::IdleRule& rule = config::named(options, name).idle_rule;
    rule = either(
        [&model = spec.model] {
          return architecture_of(model).has_blocks()
                     ? ""
                     : fmt::format("type is {}", name_of(model.type));
        },
        std::move(rule));
  }
  std::vector<std::string> of_translations{"valid-max-sentences"};
  for (const config::Option& option : config::validation_fields(spec.search))
    of_translations.push_back(option.name);
  for (const std::string& name : of_translations)
    config::named(options, name).idle_rule = [&metrics = spec.train.valid_metrics] {
      const bool translates =
          std::any_of(metrics.begin(), metrics.end(), [](const ValidMetric metric) {
            return metric == ValidMetric::bleu || metric == ValidMetric::chrf;
          });
      return translates ? "" : "no metric of valid-metrics translates";
    };
  config::named(options, "guided-alignment").idle_rule = [&spec] {
    return spec.train.guided_alignment_weight > 0 ? "" : "guided-alignment-weight is 0";
  };
  config::named(options, "guided-alignment-weight").idle_rule = [&spec] {
    return spec.data.guided_alignment == "none" && spec.train.guided_alignment_weight > 0
               ? "guided-alignment is none"
               : "";
  };
  // A variant of units has an effect if the other variant is another unit.
  const auto unless_a_variant = [&spec](auto member, auto one, auto other) {
    return [&model = spec.model, member, one, other]() -> std::string {
      ModelSpec changed = model;
      changed.*member = model.*member == one ? other : one;
      const std::vector<std::string> units = units_of(model);
      const bool has_none = std::all_of(units.begin(), units.end(), [&](const std::string& unit) {
        return unit_settings(model, unit).unit == unit_settings(changed, unit).unit;
      });
      return has_none ? fmt::format("unit {} has no such variant", units.back()) : "";
    };
  };
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other) \
  config::named(options, option).idle_rule =                      \
      unless_a_variant(&ModelSpec::member, Enum::usual, Enum::other);
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION
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

}  // namespace nmt::app
