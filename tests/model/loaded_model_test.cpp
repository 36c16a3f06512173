#include "model/directory/loaded_model.h"

#include "core/error.h"
#include "tests/support/engine.h"
#include "text/vocabulary/train_vocabulary.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

Vocabulary small_vocabulary() {
  const std::vector<std::string> lines{"the small dog sees a house", "a woman likes the old river",
                                       "my brother paints an apple"};
  return train_vocabulary(
             static_cast<std::int64_t>(lines.size()),
             [&](std::int64_t i) { return std::string_view(lines[static_cast<std::size_t>(i)]); },
             {.size = 60}, "test")
      .vocabulary;
}

struct LoadedModelTest : testing::Test {
  LoadedModelTest()
      : path(testing::TempDir() + "nmt_loaded_model_" + std::to_string(::getpid())),
        vocabulary(small_vocabulary()) {
    fs::remove_all(path);
    spec.dim_emb = 96;
    spec.dim_rnn = 128;
    spec.enc_depth = spec.dec_depth = 2;
    spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
    spec.enc_cell = spec.dec_cell = "gru";
  }
  ~LoadedModelTest() override { fs::remove_all(path); }

  CheckpointContents checkpoint_of(Model& model) const {
    CheckpointContents checkpoint;
    checkpoint.updates = 5;
    for (Parameter& p : model.parameters().all()) checkpoint.model.emplace_back(p.name, p.value);
    return checkpoint;
  }
  void save(const CheckpointContents& checkpoint) {
    if (!ModelDirectory::is_there(path)) ModelDirectory::create(path, spec, vocabulary, vocabulary);
    ModelDirectory::open(path).save(checkpoint, false, 1, 1);
  }
  std::string error() {
    test::Engine fresh(1);
    try {
      LoadedModel::load(path, fresh.context);
    } catch (const Error& problem) {
      EXPECT_EQ(problem.status(), ExitStatus::data);
      return problem.what();
    }
    return "no error";
  }

  std::string path;
  Vocabulary vocabulary;
  ModelSpec spec;
  test::Engine engine{2};
};

TEST_F(LoadedModelTest, ScoresAsTheModelThatWasSaved) {
  Model model(spec, vocabulary.size(), vocabulary.size(), engine.context, 3);
  save(checkpoint_of(model));
  test::Engine other(2);
  const auto loaded = LoadedModel::load(path, other.context);
  EXPECT_EQ(loaded->updates(), 5);
  EXPECT_EQ(loaded->target_vocabulary().size(), vocabulary.size());
  model.freeze();
  ModelScorer scorer(model, 1, 2);
  const std::vector<std::vector<std::int32_t>> sources{{5, 6, 7}, {8}};
  const auto a = scorer.begin(sources, false), b = loaded->scorer().begin(sources, false);
  const std::vector<std::int32_t> parents{0, 1}, tokens{1, 1};
  a->advance(parents, tokens);
  b->advance(parents, tokens);
  const NextTokens x = a->score(0, 2), y = b->score(0, 2);
  ASSERT_EQ(x.vocabulary, y.vocabulary);
  EXPECT_EQ(std::memcmp(x.logits, y.logits,
                        sizeof(float) * static_cast<std::size_t>(x.rows * x.vocabulary)),
            0);
}

TEST_F(LoadedModelTest, HoldsTheWeightsLittleMoreThanOnce) {
  Model model(spec, vocabulary.size(), vocabulary.size(), engine.context, 3);
  save(checkpoint_of(model));
  const double bytes = 4.0 * static_cast<double>(model.parameters().elements());
  test::Engine other(1);
  const auto loaded = LoadedModel::load(path, other.context);
  EXPECT_LT(static_cast<double>(other.arena.statistics().peak), 1.5 * bytes);
  EXPECT_GT(static_cast<double>(other.arena.statistics().in_use), 0.9 * bytes);
}

TEST_F(LoadedModelTest, TensorsThatDoNotFitAreNamed) {
  Model model(spec, vocabulary.size(), vocabulary.size(), engine.context, 3);
  const CheckpointContents good = checkpoint_of(model);
  CheckpointContents bad = good;
  const std::string first = bad.model.front().name;
  bad.model.front().name = "other.name";
  save(bad);
  EXPECT_NE(error().find("lacks " + first + "; has unexpected tensors: other.name"),
            std::string::npos)
      << error();
  bad = good;
  bad.model.front().shape = {bad.model.front().shape[1], bad.model.front().shape[0]};
  bad.updates = 6;
  save(bad);
  EXPECT_NE(error().find("tensor " + first + ": is F32 [96,60], expected F32 [60,96]"),
            std::string::npos)
      << error();
  bad = good;
  bad.model.front().dtype = safetensors::FileDtype::i32;
  bad.updates = 7;
  save(bad);
  EXPECT_NE(error().find("is I32 [60,96], expected F32"), std::string::npos) << error();
}

}  // namespace
}  // namespace nmt
