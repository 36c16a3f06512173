#include "app/train/resumed_settings.h"

#include "config/settings.h"
#include "train/autoconfig.h"

#include <algorithm>
#include <array>
#include <variant>

namespace nmt::app {
namespace {

// Where things are and how they are told; no part of what is trained. The texts themselves are
// compared by their hashes; what counts of the development set's names is whether there are any.
constexpr std::array no_part = {"model",      "overwrite",   "no-reload", "train-sets",
                                "valid-sets", "cpu-threads", "device",    "rank-timeout"};
// Chosen, though "auto" or 0 is a value of theirs; and the vocabularies, which are the directory's
// from then on.
constexpr std::array taken_over = {"attention-query", "positions", "vocabs"};
// Chosen where none of them is set, though their defaults are values like others.
constexpr std::array ties = {"tied-embeddings", "tied-embeddings-src", "tied-embeddings-all"};

template <class Names>
bool among(const Names& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

// What nmt-train chooses by itself when the setting is not given.
bool is_chosen(const config::Option& option, const TrainingSpec& spec) {
  return option.chosen || among(taken_over, option.name) ||
         (among(ties, option.name) && !spec.ties_given());
}

TrainingSpec read_settings(const std::string& yaml) {
  TrainingSpec spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(spec));
  settings.read_yaml(yaml, "the settings of the training so far");
  settings.read({});
  return spec;
}

}  // namespace

std::vector<train::ChangedSetting> take_over(TrainingSpec& spec, const std::string& yaml) {
  TrainingSpec before = read_settings(yaml);
  // An older version wrote "auto" where this one writes what it means. A setting that the older
  // version did not have is at its default there: a new option's default is to do what was done
  // without it.
  train::choose_attention_query(before.model);
  train::choose_positions(before.model, before.data);
  if (spec.is_given("attention-query")) train::choose_attention_query(spec.model);
  if (spec.is_given("positions")) train::choose_positions(spec.model, spec.data);
  const std::vector<config::Option> options = fields(spec), earlier = fields(before);
  std::vector<train::ChangedSetting> changes;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const config::Option& option = options[i];
    if (std::holds_alternative<std::monostate>(option.target)) continue;
    const std::vector<std::string> was = config::values(earlier[i]), is = config::values(option);
    if (was == is || (among(no_part, option.name) && !(option.name == "valid-sets" && is.empty())))
      continue;
    if (is_chosen(option, spec) && !spec.is_given(option.name)) {
      config::assign(option, was, option.name);
    } else if (std::none_of(changes.begin(), changes.end(),
                            [&](const auto& change) { return change.name == option.name; })) {
      changes.push_back({option.name, joined_words(was), joined_words(is)});
    }
  }
  return changes;
}

}  // namespace nmt::app
