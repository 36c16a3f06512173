#include "app/train/train_settings.h"

#include "app/program.h"
#include "config/fields.h"
#include "config/period.h"
#include "core/log.h"
#include "train/autoconfig.h"

#include <algorithm>
#include <array>

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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

}  // namespace

TrainSettings::TrainSettings()
    : TrainSettings("nmt-train", "[OPTIONS] SOURCE TARGET",
                    "trains a translation model on two files of lines that are translations of "
                    "each other; the same command again goes on",
                    "train-sets") {}

TrainSettings::TrainSettings(const char* program, const char* usage, const char* summary,
                             const char* positional)
    : settings(program, usage, summary) {
  for (auto& fields : {config::fields(model), config::fields(data), config::fields(train),
                       config::validation_fields(search), config::training_fields(compute)}) {
    options_.insert(options_.end(), fields.begin(), fields.end());
    settings.add(fields);
  }
  settings.positionals({positional});
  allow_units(settings);
}

void TrainSettings::check() const {
  config::check(data);
  config::check(search);
  config::check(model, data);
}

void TrainSettings::warn_of_idle() const {
  struct Rule {
    const char* name;
    bool is_idle;
    std::string why;
  };
  const std::string schedule = fmt::format("schedule is {}", name_of(train.schedule));
  const bool has_warmup = static_cast<bool>(parse_period(train.lr_warmup, "lr-warmup")),
             has_vocabs = !data.vocabs.empty();
  const Rule rules[] = {
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
  std::string idle;
  for (const Rule& rule : rules) {
    const auto option =
        std::find_if(options_.begin(), options_.end(),
                     [&](const config::Option& known) { return known.name == rule.name; });
    NMT_CHECK(option != options_.end(), "there is no option --{}", rule.name);
    if (rule.is_idle && settings.is_set(rule.name) && config::values(*option) != option->initial)
      idle += fmt::format("{}{} ({})", idle.empty() ? "" : ", ", rule.name, rule.why);
  }
  if (!idle.empty()) log::warn("set, but without effect here: {}", idle);
}

bool TrainSettings::ties_by_hand() const {
  return std::any_of(ties.begin(), ties.end(),
                     [&](const char* name) { return settings.is_set(name); });
}

std::vector<train::ChangedSetting> TrainSettings::take_over(const std::string& yaml) {
  TrainSettings before;
  before.settings.read_yaml(yaml, "the settings of the training so far");
  before.settings.read({});
  // An older version wrote "auto" where this one writes what it means. A setting that the older
  // version did not have is at its default there: a new option's default is to do what was done
  // without it.
  train::choose_attention_query(before.model);
  train::choose_positions(before.model, before.data);
  if (settings.is_set("attention-query")) train::choose_attention_query(model);
  if (settings.is_set("positions")) train::choose_positions(model, data);
  std::vector<train::ChangedSetting> changes;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const config::Option& option = options_[i];
    if (std::holds_alternative<std::monostate>(option.target)) continue;
    const std::vector<std::string> was = config::values(before.options_[i]),
                                   is = config::values(option);
    if (was == is || (among(no_part, option.name) && !(option.name == "valid-sets" && is.empty())))
      continue;
    const bool chosen = option.chosen || among(taken_over, option.name) ||
                        (among(ties, option.name) && !ties_by_hand());
    if (chosen && !settings.is_set(option.name)) {
      config::assign(option, was, option.name);
    } else if (std::none_of(changes.begin(), changes.end(),
                            [&](const auto& change) { return change.name == option.name; })) {
      changes.push_back({option.name, joined(was), joined(is)});
    }
  }
  return changes;
}

}  // namespace nmt::app
