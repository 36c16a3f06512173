#include "app/train/resumed_settings.h"

#include "config/settings.h"
#include "model/architecture.h"
#include "model/older_settings.h"
#include "train/autoconfig.h"

#include <algorithm>
#include <variant>

namespace nmt::app {
namespace {

TrainingSpec read_settings(const std::string& yaml) {
  TrainingSpec spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(spec));
  settings.read_yaml(yaml, "the settings of the training so far");
  settings.read({});
  return spec;
}

}  // namespace

std::string earlier_after(const std::string& yaml) {
  return read_settings(yaml).train.after;
}

std::vector<std::string> earlier_vocabs(const std::string& yaml) {
  return read_settings(yaml).data.vocabs;
}

void adopt(TrainingSpec& spec, const std::string& yaml, const std::vector<std::string>& names) {
  TrainingSpec before = read_settings(yaml);
  const std::vector<config::Option> options = fields(spec), earlier = fields(before);
  for (std::size_t i = 0; i < options.size(); ++i)
    if (std::ranges::find(names, options[i].name) != names.end() && !spec.is_given(options[i].name))
      config::assign(options[i], config::values(earlier[i]), options[i].name);
}

std::vector<train::ChangedSetting> take_over(TrainingSpec& spec, const std::string& yaml) {
  TrainingSpec before = read_settings(yaml);
  // Older versions stored "auto" where this one stores the resolved value. An option that the older
  // version did not have has its default, which must reproduce the older behavior.
  train::choose_attention_query(before.model);
  train::choose_positions(before.model, before.data.max_length);
  update_older_settings(before.model);
  NoiseSpec& noise = before.noise;
  for (double* rate :
       {&noise.upper, &noise.title, &noise.typos, &noise.punctuation, &noise.bpe_dropout})
    *rate = std::max(*rate, 0.0);
  if (spec.is_given("attention-query")) train::choose_attention_query(spec.model);
  if (spec.is_given("positions")) train::choose_positions(spec.model, before.model.positions);
  const std::vector<config::Option> options = fields(spec), earlier = fields(before);
  const bool has_no_encoder_unit = encoder_attends(spec.model) && encoder_attends(before.model);
  std::vector<train::ChangedSetting> changes;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const config::Option& option = options[i];
    if (std::holds_alternative<std::monostate>(option.target)) continue;
    const std::vector<std::string> was = config::values(earlier[i]);
    if (was == config::values(option)) continue;
    if (spec.keeps(option) || (has_no_encoder_unit && option.name == "enc-cell")) {
      config::assign(option, was, option.name);
      continue;
    }
    train::ChangedSetting change{option.name, config::joined_values(earlier[i]),
                                 config::joined_values(option), ""};
    // Translation draws the pairs that it holds out; the other tasks take the last ones, or some at
    // equal distances.
    const bool holds_out = spec.data.valid_sets.empty() &&
                           (option.name != "seed" || spec.model.task == Task::translation);
    change.refusal = train::refusal(option, change.before, change.now, holds_out);
    const auto is_idle = [](const config::Option& o) {
      return o.idle_rule && !o.idle_rule().empty();
    };
    if (!change.refusal.empty() && is_idle(earlier[i]) && is_idle(option)) continue;
    const bool is_logged = option.role != config::Role::location || !change.refusal.empty();
    if (is_logged && std::none_of(changes.begin(), changes.end(),
                                  [&](const auto& known) { return known.name == change.name; }))
      changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace nmt::app
