#include "app/train/idle_rules.h"

#include "config/fields.h"
#include "model/architecture.h"
#include "model/encoder.h"
#include "nn/unit_registry.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace nmt::app {

void add_idle_rules(std::vector<config::Option>& options, TrainingSpec& spec) {
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
}

}  // namespace nmt::app
