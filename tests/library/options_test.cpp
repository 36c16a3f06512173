#include "library/options.h"

#include "app/score/score_spec.h"
#include "app/train/training_spec.h"
#include "app/translate/translate_spec.h"
#include "core/error.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::library {
namespace {

/// A program's settings as YAML after reading these values.
template <class Spec>
std::string read_yaml(const std::vector<NamedValue>& values,
                      const std::vector<NamedValue>& defaults, const Settings& extra = {}) {
  Spec spec;
  config::Settings settings("test", "", "");
  settings.add(app::fields(spec));
  read(values, defaults, extra, settings);
  return settings.yaml(true);
}

/// Members whose default is a value, not the absence of one.
std::vector<NamedValue> with_value(std::vector<NamedValue> values) {
  std::erase_if(values, [](const NamedValue& value) {
    return value.words.empty() || value.words.front().empty() || value.words.front() == "0";
  });
  return values;
}

template <class Spec, class Options>
void expect_defaults_of_program() {
  const std::vector<NamedValue> defaults = members(Options{});
  const std::string fresh = read_yaml<Spec>({}, {});
  EXPECT_EQ(read_yaml<Spec>(defaults, defaults), fresh);
  for (const NamedValue& value : with_value(defaults))
    EXPECT_EQ(read_yaml<Spec>({value}, {}), fresh) << value.name;
}

TEST(LibraryOptions, DefaultsAreThoseOfThePrograms) {
  expect_defaults_of_program<app::TranslateSpec, TranslatorOptions>();
  expect_defaults_of_program<app::ScoreSpec, ScorerOptions>();
  expect_defaults_of_program<app::TrainingSpec, TrainOptions>();
}

TEST(LibraryOptions, ZeroMeansWhatItMeansInThePrograms) {
  const SearchSpec search;
  EXPECT_EQ(search.normalize, TranslatorOptions().normalize);
  EXPECT_EQ(search.coverage_penalty, TranslatorOptions().coverage_penalty);
  const app::ScoreSpec score;
  EXPECT_EQ(score.search.length_penalty, ScorerOptions().length_penalty);
}

TEST(LibraryOptions, EveryMemberIsAnOption) {
  app::TranslateSpec translate;
  app::ScoreSpec score;
  app::TrainingSpec train;
  config::Settings translating("a", "", ""), scoring("b", "", ""), training("c", "", "");
  translating.add(app::fields(translate));
  scoring.add(app::fields(score));
  training.add(app::fields(train));
  const auto expect_names = [](const config::Settings& settings,
                               const std::vector<NamedValue>& values) {
    const std::vector<std::string> names = settings.names();
    for (const NamedValue& value : values)
      EXPECT_NE(std::find(names.begin(), names.end(), value.name), names.end()) << value.name;
  };
  expect_names(translating, members(TranslatorOptions{}));
  expect_names(scoring, members(ScorerOptions{}));
  expect_names(training, members(TrainOptions{}));
}

TEST(LibraryOptions, ChangedMembersAndSettingsAreRead) {
  TranslatorOptions options;
  options.beam_size = 7;
  options.weights = {0.25, 0.75};
  app::TranslateSpec spec;
  config::Settings settings("test", "", "");
  settings.add(app::fields(spec));
  read(members(options), members(TranslatorOptions{}),
       {{"max-length-offset", "3"}, {"shortlist", "a file 10 20"}}, settings);
  EXPECT_EQ(spec.search.beam_size, 7);
  EXPECT_EQ(spec.search.max_length_offset, 3);
  EXPECT_EQ(spec.models.weights, (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(spec.search.shortlist, (std::vector<std::string>{"a", "file", "10", "20"}));
}

TEST(LibraryOptions, SpacesAroundAListAreDropped) {
  for (const char* const text : {"file", " file", "file\n", "\t file "}) {
    app::TranslateSpec spec;
    config::Settings settings("test", "", "");
    settings.add(app::fields(spec));
    read({}, {}, {{"shortlist", text}}, settings);
    EXPECT_EQ(spec.search.shortlist, std::vector<std::string>{"file"}) << text;
  }
}

TEST(LibraryOptions, TextsKeepTheirBytes) {
  using namespace std::string_literals;
  const std::string text = "[a]: \xe4, \xef\xb7\x90 '\"\\ # \t\n\x7f \0 "s;
  TranslatorOptions options;
  options.shortlist = {text, "10"};
  app::TranslateSpec spec;
  config::Settings settings("test", "", "");
  settings.add(app::fields(spec));
  read(members(options), members(TranslatorOptions{}), {{"glossary", text}}, settings);
  EXPECT_EQ(spec.search.shortlist, options.shortlist);
  EXPECT_EQ(spec.text_rules.glossary, text);
}

TEST(LibraryOptions, AMemberAndASettingOfTheSameNameContradict) {
  TranslatorOptions options;
  options.beam_size = 7;
  EXPECT_THROW(read_yaml<app::TranslateSpec>(members(options), members(TranslatorOptions{}),
                                             {{"beam-size", "7"}}),
               Error);
}

/// The message of the error of `action`.
template <class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// They are also read by users of the library, who set "precision", not --precision.
TEST(LibraryOptions, MessagesNameSettingsWithoutDashes) {
  const auto translator = [](const Settings& settings) {
    return message_of([&] {
      TranslatorOptions options;
      options.device = "cpu";
      options.settings = settings;
      Translator("none", options);
    });
  };
  const auto training = [](const Settings& settings) {
    return message_of([&] {
      TrainOptions options;
      options.device = "cpu";
      options.model = testing::TempDir() + "/nmt_messages";
      options.settings = settings;
      train_model(options);
    });
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {message_of([] { Translator::ensemble({}); }), "model: no directory given"},
      {translator({{"lm-weight", "0.5"}}), "lm names its directory"},
      {translator({{"precision", "tf32"}}), "(device=cuda)"},
      {training({{"task", "tagging"}}), "task=tagging"},
      {training({{"task", "classification"}}), "task=classification"},
      {training({{"task", "language-model"}}), "task=language-model"},
      {training({{"train-sets", "a b"}, {"dim-vocabs", "8000 4000"}}), "joint-vocab=false"}};
  for (const auto& [message, expected] : cases) {
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(message.find("--"), std::string::npos) << message;
  }
}

TEST(LibraryOptions, NamesOfATrainingAreUtf8) {
  TrainOptions options;
  options.device = "cpu";
  options.train_sets = {"missing.a", "missing.b"};
  options.model = testing::TempDir() + "/nmt_\xe4";
  const std::string message = message_of([&] { train_model(options); });
  EXPECT_TRUE(message.starts_with("model: ")) << message;
  EXPECT_TRUE(message.ends_with(" is not UTF-8; rename the file")) << message;
  EXPECT_FALSE(std::filesystem::exists(options.model));
}

TEST(LibraryOptions, TheLogLevelIsNoSetting) {
  try {
    read_yaml<app::TranslateSpec>({}, {}, {{"log-level", "debug"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_NE(std::string(error.what()).find("set_log_level"), std::string::npos);
  }
}

}  // namespace
}  // namespace nmt::library
