#include "nmt/translator.h"

#include "core/nlohmann.h"
#include "model/directory/model_directory.h"
#include "model/model.h"
#include "nmt/error.h"
#include "nmt/log.h"
#include "nmt/metrics.h"
#include "nmt/model_info.h"
#include "nmt/scorer.h"
#include "nmt/version.h"
#include "tests/support/engine.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

namespace nmt {
namespace {

const std::vector<std::string> lines{"the small dog sees a house", "a woman likes the old river",
                                     "my brother paints an apple", "", "the house"};

/// A directory with a small model of random weights.
class FacadeTest : public testing::Test {
 protected:
  FacadeTest() : path(testing::TempDir() + "nmt_facade_" + std::to_string(::getpid())) {
    make(0);
    set_log_level(LogLevel::error);
  }
  /// Replaces the model.
  void make(int context_sentences) {
    const Vocabulary vocabulary =
        train_vocabulary(
            static_cast<std::int64_t>(lines.size()),
            [&](std::int64_t i) { return std::string_view(lines[static_cast<std::size_t>(i)]); },
            {.size = 60}, "test")
            .vocabulary;
    ModelSpec spec;
    spec.context_sentences = context_sentences;
    spec.dim_emb = 12;
    spec.dim_rnn = 16;
    spec.enc_depth = spec.dec_depth = 1;
    spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
    test::Engine engine{1};
    Model model(spec, vocabulary.size(), vocabulary.size(), engine.context, 3);
    CheckpointContents checkpoint;
    checkpoint.updates = 5;
    for (Parameter& p : model.parameters().all()) checkpoint.model.emplace_back(p.name, p.value);
    ModelDirectory::create(path, spec, vocabulary, vocabulary).save(checkpoint, false, 1, 1);
  }
  ~FacadeTest() override { std::filesystem::remove_all(path); }
  std::string path;
};

TEST_F(FacadeTest, SeveralThreadsUseOneTranslatorAndOneScorer) {
  const auto texts = [](const std::vector<Translation>& translations) {
    std::vector<std::string> result;
    for (const Translation& each : translations) result.push_back(each.text);
    return result;
  };
  const auto scores = [](const std::vector<PairProbability>& pairs) {
    std::vector<double> result;
    for (const PairProbability& each : pairs) result.push_back(each.log_prob);
    return result;
  };
  Translator alone(path, {.max_length_factor = 1, .workers = 1, .cpu_threads = 1});
  Scorer scorer_alone(path, {.workers = 1, .cpu_threads = 1});
  const std::vector<std::string> expected = texts(alone.translate(lines)),
                                 reversed(lines.rbegin(), lines.rend());
  const std::vector<double> expected_scores = scores(scorer_alone.score(lines, reversed));
  for (const int workers : {0, 2}) {
    Translator translator(path, {.max_length_factor = 1, .workers = workers, .cpu_threads = 2});
    Scorer scorer(path, {.workers = workers, .cpu_threads = 2});
    std::vector<std::thread> threads;
    std::vector<std::vector<std::string>> outputs(4);
    std::vector<std::vector<double>> found(4);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      threads.emplace_back([&, i] {
        outputs[i] = texts(translator.translate(lines));
        found[i] = scores(scorer.score(lines, reversed));
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i], expected) << workers;
      EXPECT_EQ(found[i], expected_scores) << workers;
    }
  }
}

// Threads of musl have 128 KiB, those of macOS and of Python's threading.stack_size() may have 256.
TEST_F(FacadeTest, CallingThreadsNeedLittleStack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "frames are larger with sanitizers";
#endif
  Translator translator(path, {.max_length_factor = 1, .workers = 1, .cpu_threads = 1});
  Scorer scorer(path, {.workers = 1, .cpu_threads = 1});
  std::pair<Translator*, Scorer*> both{&translator, &scorer};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* given) -> void* {
                  const auto& [translate, score] =
                      *static_cast<std::pair<Translator*, Scorer*>*>(given);
                  translate->translate(lines);
                  score->score(lines, lines);
                  return nullptr;
                },
                &both),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// The windows of a call are one document; calls are several.
TEST_F(FacadeTest, TheLinesOfACallAreADocument) {
  EXPECT_EQ(Translator(path).context_sentences(), 0);
  make(2);
  const TranslatorOptions options{
      .max_length_factor = 1, .attention = true, .workers = 1, .cpu_threads = 1};
  Translator translator(path, options);
  EXPECT_EQ(translator.context_sentences(), 2);
  const std::vector<Translation> whole = translator.translate(lines);
  // Context sentences and their separators are columns too.
  const auto pieces = [&](std::size_t line) {
    return static_cast<int>(translator.source_vocabulary().encode(lines[line]).size()) + 1;
  };
  EXPECT_EQ(whole[1].attention.columns, pieces(0) + pieces(1));
  EXPECT_EQ(whole[2].attention.columns, pieces(0) + pieces(1) + pieces(2));
  EXPECT_EQ(whole[4].attention.columns, pieces(4));
  EXPECT_EQ(translator.translate_line(lines[1]).attention.columns, pieces(1));

  TranslatorOptions small = options;
  small.mini_batch = 1;
  small.maxi_batch = 2;
  Translator in_windows = translator.with(small);
  const std::vector<Translation> parts = in_windows.translate(lines);
  std::size_t next = 0, done = 0;
  in_windows.translate(
      [&](std::string& line) {
        if (next == lines.size()) return false;
        line = lines[next++];
        return true;
      },
      [&](const Translation& each) {
        EXPECT_EQ(each.attention.weights, whole[done].attention.weights) << done;
        ++done;
      });
  EXPECT_EQ(done, lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(parts[i].attention.weights, whole[i].attention.weights) << i;

  ScorerOptions scoring{.mini_batch = 1, .maxi_batch = 2, .workers = 1, .cpu_threads = 1};
  Scorer scorer(path, scoring);
  std::vector<std::string> targets;
  std::vector<std::vector<std::string>> lists;
  for (const Translation& each : whole) {
    targets.push_back(each.text);
    lists.push_back({"the", each.text});
  }
  const std::vector<PairProbability> scores = scorer.score(lines, targets);
  const auto of_lists = scorer.score_n_best(lines, lists);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    EXPECT_EQ(of_lists[i][1].log_prob, scores[i].log_prob) << i;
    if (i < 4) {
      EXPECT_NE(scorer.score({lines[i]}, {targets[i]})[0].log_prob, scores[i].log_prob) << i;
    }
  }
}

TEST_F(FacadeTest, ACallbackMayUseTheTranslator) {
  Translator translator(path, {.max_length_factor = 1, .cpu_threads = 1});
  std::size_t next = 0;
  const auto count = translator.translate(
      [&](std::string& line) {
        if (next == lines.size()) return false;
        line = lines[next++];
        return true;
      },
      [&](const Translation& each) {
        EXPECT_EQ(translator.translate_line(each.text).text,
                  translator.translate_line(each.text).text);
      });
  EXPECT_EQ(count, static_cast<std::int64_t>(lines.size()));
}

TEST_F(FacadeTest, TranslatorsAndScorersShareLoadedModels) {
  TranslatorOptions options{.max_length_factor = 1, .cpu_threads = 1};
  auto first = std::make_unique<Translator>(path, options);
  const ScorerOptions scoring{.attention = true, .cpu_threads = 1};
  options.beam_size = 2;
  options.attention = true;
  Translator other = first->with(options);
  Scorer scorer(*first, scoring);
  first.reset();
  const std::vector<std::string> reversed(lines.rbegin(), lines.rend());
  const std::vector<Translation> shared = other.translate(lines),
                                 alone = Translator(path, options).translate(lines);
  const std::vector<PairProbability> scores = scorer.score(lines, reversed),
                                     expected = Scorer(path, scoring).score(lines, reversed);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(shared[i].text, alone[i].text);
    EXPECT_EQ(scores[i].log_prob, expected[i].log_prob);
    const Attention& attention = shared[i].attention;
    EXPECT_EQ(attention.rows, lines[i].empty() ? 0 : static_cast<int>(shared[i].tokens.size()) + 1);
    EXPECT_EQ(attention.weights.size(),
              static_cast<std::size_t>(attention.rows) * attention.columns);
    for (int row = 0; row < attention.rows; ++row)
      EXPECT_NEAR(std::accumulate(attention.weights.begin() + row * attention.columns,
                                  attention.weights.begin() + (row + 1) * attention.columns, 0.0),
                  1.0, 1e-5);
    EXPECT_EQ(scores[i].attention.rows, static_cast<int>(scores[i].token_log_probs.size()));
  }
  const std::vector<std::vector<PairProbability>> lists =
      scorer.score_n_best({lines[0], lines[1]}, {{lines[1], lines[2], lines[3]}, {}});
  ASSERT_EQ(lists[0].size(), 3u);
  EXPECT_TRUE(lists[1].empty());
  EXPECT_EQ(lists[0][1].log_prob, scorer.score({lines[0]}, {lines[2]}).front().log_prob);
  options.precision = "int8";
  EXPECT_THROW(other.with(options), Error);
}

TEST_F(FacadeTest, MembersThatAreNotSetAreThoseOfTheLoadedModels) {
  const Translator first(path, {.max_length = 3, .cpu_threads = 1, .precision = "int8"});
  Translator second = first.with({.beam_size = 1});
  Scorer scorer(first);
  Translator same(path, {.beam_size = 1, .max_length = 3, .cpu_threads = 1, .precision = "int8"});
  const std::vector<Translation> got = second.translate(lines), expected = same.translate(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(got[i].text, expected[i].text);
  Scorer alone(path, {.max_length = 3, .cpu_threads = 1, .precision = "int8"});
  EXPECT_EQ(scorer.score({lines[0]}, {lines[1]}).front().log_prob,
            alone.score({lines[0]}, {lines[1]}).front().log_prob);
  try {
    first.with({.max_length = 4});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "max-length: 4 differs from the loaded models, which have max-length: 3");
  }
  for (const auto& [name, value] :
       {std::pair{"lm", "/nothing"}, {"lm-weight", "0.5"}, {"cuda-graphs", "off"}}) {
    TranslatorOptions options;
    options.settings = {{name, value}};
    try {
      first.with(options);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_TRUE(std::string(error.what()).starts_with(name)) << error.what();
    }
  }
}

TEST_F(FacadeTest, OptionsWithoutEffectOnOneModelAreRefused) {
  EXPECT_THROW(Translator(path, {.weights = {1.0}}), Error);
  EXPECT_THROW(Scorer(path, {.weights = {1.0}}), Error);
  for (const auto& [name, value] : {std::pair{"context", "line"}, {"parts", "5"}}) {
    ScorerOptions options;
    options.settings = {{name, value}};
    EXPECT_THROW(Scorer(path, options), Error) << name;
  }
}

TEST_F(FacadeTest, TheFirstLogLineHasTheClassAndTheVersion) {
  std::vector<std::string> logged;
  set_log_level(LogLevel::info);
  set_log_handler([&](LogLevel, const std::string& message) { logged.push_back(message); });
  const Translator translator(path, {.cpu_threads = 1});
  set_log_handler({});
  set_log_level(LogLevel::error);
  ASSERT_FALSE(logged.empty());
  const std::string begin = fmt::format("nmt::Translator {}.{}.{} on cpu", NMT_VERSION_MAJOR,
                                        NMT_VERSION_MINOR, NMT_VERSION_PATCH);
  EXPECT_EQ(logged.front().substr(0, begin.size()), begin);
}

TEST_F(FacadeTest, FilesAreNamedAndDistinct) {
  Translator translator(path, {.max_length_factor = 1, .cpu_threads = 1});
  const std::string input = path + "/in", link = path + "/link", output = path + "/out";
  std::ofstream(input) << "the house\n";
  std::filesystem::create_symlink(input, link);
  using Names = std::pair<std::string, std::string>;
  for (const auto& [from, to] : {Names{"", output}, Names{"-", output}, Names{input, ""},
                                 Names{input, "-"}, Names{input, input}, Names{input, link}}) {
    try {
      translator.translate_file(from, to);
      FAIL() << from << " " << to;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage) << error.what();
    }
  }
  EXPECT_FALSE(std::filesystem::exists(output));
  std::string text;
  std::getline(std::ifstream(input), text);
  EXPECT_EQ(text, "the house");
  EXPECT_EQ(translator.translate_file(input, output), 1);
}

TEST_F(FacadeTest, StandardInputIsNotReadForSettings) {
  const auto message = [&](const TranslatorOptions& options) -> std::string {
    try {
      const Translator translator(path, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.shortlist = {"-"}}), "shortlist: '-'; expected the name of a file");
  EXPECT_EQ(message({.shortlist = {"", "100"}}), "shortlist: ''; expected the name of a file");
  EXPECT_EQ(message({.settings = {{"glossary", "-"}}}),
            "glossary: '-'; expected the name of a file");
  EXPECT_EQ(message({.shortlist = {"off"}, .cpu_threads = 1}), "no error");
}

TEST_F(FacadeTest, InformationNamesADamagedFile) {
  EXPECT_EQ(model_info(path).dim_rnn, 16);
  const std::string config = path + "/config.json";
  nlohmann::json settings = nlohmann::json::parse(std::ifstream(config));
  settings["model"]["heads"] = 5;
  std::ofstream(config) << settings;
  try {
    model_info(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    EXPECT_TRUE(std::string(error.what()).starts_with(config + ": ")) << error.what();
  }
}

TEST_F(FacadeTest, ASmoothingValueNeedsASmoothingThatTakesOne) {
  BleuOptions options;
  options.smoothing_value = 0.5;
  const std::vector<Sentences> text{{"a b c"}};
  for (const BleuSmoothing smoothing : {BleuSmoothing::exp, BleuSmoothing::none}) {
    options.smoothing = smoothing;
    EXPECT_THROW(bleu(text[0], text, options), Error);
    EXPECT_THROW(signature(options, 1), Error);
    EXPECT_THROW(compare_bleu({text[0], text[0]}, text, options), Error);
  }
  for (const BleuSmoothing smoothing : {BleuSmoothing::floor, BleuSmoothing::add_k}) {
    options.smoothing = smoothing;
    bleu(text[0], text, options);
  }
}

TEST_F(FacadeTest, FilesOfTheModelAreKeptFromAnotherDirectory) {
  namespace fs = std::filesystem;
  const std::string input = path + "/in", config = path + "/config.json";
  std::ofstream(input) << "the house\n";
  const auto size = fs::file_size(config);
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(path).parent_path());
  const TranslatorOptions options{.max_length_factor = 1, .cpu_threads = 1};
  Translator translator(fs::path(path).filename().string(), options);
  fs::current_path(before);
  Translator other = translator.with(options);
  for (Translator* const each : {&translator, &other}) {
    try {
      each->translate_file(input, config);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage) << error.what();
    }
  }
  EXPECT_EQ(fs::file_size(config), size);
}

TEST_F(FacadeTest, AStoppedCallLeavesAUsableTranslator) {
  Translator translator(path, {.max_length_factor = 1, .mini_batch = 1, .cpu_threads = 1});
  int batches = 0;
  try {
    translator.translate(lines, [&] { return ++batches == 3; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::interrupted);
  }
  EXPECT_EQ(batches, 3);
  EXPECT_EQ(translator.translate(lines).size(), lines.size());
}

}  // namespace
}  // namespace nmt
