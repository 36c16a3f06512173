#include "model/directory/stored_weights.h"

#include "core/error.h"
#include "model/directory/loaded_model.h"
#include "tests/support/engine.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

constexpr int vocabulary = 37;

ModelSpec small(const char* type, const char* unit) {
  ModelSpec spec;
  spec.type = parse_enum<ModelType>(type, "type");
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = 24;
  spec.dim_rnn = 32;
  spec.enc_depth = spec.dec_depth = spec.type == ModelType::rnnsearch ? 1 : 3;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  return spec;
}

std::vector<ModelSpec> specs() {
  std::vector<ModelSpec> all{small("deep", "gru"),     small("rnnsearch", "atr"),
                             small("seq2seq", "lstm"), small("gnmt", "lstm"),
                             small("deep", "lrn"),     small("deep", "gru")};
  all[0].tied_embeddings_all = true;
  all[1].tied_embeddings = false;
  all[2].attention = AttentionType::none;
  all[3].dim_emb = all[3].dim_rnn;
  all[4].context_aware = true;
  all[5].groups = 4;
  return all;
}

struct StoredWeights : testing::Test {
  StoredWeights()
      : path(testing::TempDir() + "nmt_stored_" + std::to_string(::getpid()) + ".safetensors") {}
  ~StoredWeights() override { std::filesystem::remove(path); }

  std::vector<safetensors::View> views(Model& model) const {
    std::vector<safetensors::View> all;
    for (Parameter& p : model.parameters().all()) all.emplace_back(p.name, p.value);
    return all;
  }
  // The scores after one step, of two sentences.
  static std::vector<float> scores(Model& model) {
    ModelScorer scorer(model, 1, 2);
    const std::vector<std::vector<std::int32_t>> sources{{5, 6, 7, 30}, {8, 36}};
    const std::vector<std::int32_t> parents{0, 1}, tokens{1, 1};
    const auto decoding = scorer.begin(sources, false);
    decoding->advance(parents, tokens);
    const NextTokens next = decoding->score(0, 2);
    return {next.logits, next.logits + 2 * vocabulary};
  }
  // The model of a file of weights in `stored`, decoding with weights in `weights`.
  std::vector<float> loaded(const ModelSpec& spec, Dtype stored, Dtype weights) const {
    test::Engine other(1);
    other.context.weights = weights;
    Model model(spec, vocabulary, vocabulary, other.context, 0, Model::Weights::none);
    load_frozen(safetensors::File(path), stored, model);
    return scores(model);
  }
  void expect_refused(const ModelSpec& spec, const std::vector<safetensors::View>& tensors,
                      const std::string& says) {
    safetensors::write(path, tensors);
    try {
      loaded(spec, Dtype::i8, Dtype::i8);
      ADD_FAILURE() << "no error: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }

  std::string path;
  test::Engine engine{1};
};

TEST_F(StoredWeights, DecodeAsTheSameWeightsRoundedWhenLoaded) {
  for (const ModelSpec& spec : specs())
    for (const Dtype weights : {Dtype::i8, Dtype::bf16}) {
      SCOPED_TRACE(std::string(name_of(spec.type)) + " " + spec.enc_cell + " in " +
                   precision_name(weights));
      Model model(spec, vocabulary, vocabulary, engine.context, 7);
      safetensors::write(path, views(model));
      const std::vector<float> exact = loaded(spec, Dtype::f32, Dtype::f32),
                               rounded = loaded(spec, Dtype::f32, weights);
      EXPECT_NE(exact, rounded);
      const ConvertedWeights stored = convert_weights(
          safetensors::File(path), Dtype::f32, model.parameters(), weights, engine.context.cpu);
      safetensors::write(path, stored.tensors);
      EXPECT_EQ(loaded(spec, weights, weights), rounded);
      // Widened, they differ from what they were by the rounding of the weights alone.
      const std::vector<float> widened = loaded(spec, weights, Dtype::f32);
      double error = 0, size = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        error += std::pow(double{widened[i]} - exact[i], 2);
        size += std::pow(double{exact[i]}, 2);
      }
      EXPECT_LT(std::sqrt(error / size), 0.1);
      EXPECT_GT(error, 0);
    }
}

TEST_F(StoredWeights, WideningIsExact) {
  const ModelSpec spec = small("deep", "gru");
  Model model(spec, vocabulary, vocabulary, engine.context, 7);
  safetensors::write(path, views(model));
  const ConvertedWeights stored = convert_weights(
      safetensors::File(path), Dtype::f32, model.parameters(), Dtype::i8, engine.context.cpu);
  safetensors::write(path, stored.tensors);
  const ConvertedWeights wide = convert_weights(safetensors::File(path), Dtype::i8,
                                                model.parameters(), Dtype::f32, engine.context.cpu);
  const std::vector<float> scores = loaded(spec, Dtype::i8, Dtype::f32);
  safetensors::write(path, wide.tensors);
  EXPECT_EQ(loaded(spec, Dtype::f32, Dtype::f32), scores);
}

TEST_F(StoredWeights, TakeAQuarterAndAHalfOfTheMemory) {
  ModelSpec spec = small("deep", "gru");
  spec.dim_emb = spec.dim_rnn = 128;
  Model model(spec, vocabulary, vocabulary, engine.context, 7);
  const double whole = static_cast<double>(stored_bytes(model.parameters(), Dtype::f32));
  safetensors::write(path, views(model));
  for (const auto& [weights, share] : {std::pair(Dtype::i8, 0.25), std::pair(Dtype::bf16, 0.5)}) {
    const ConvertedWeights stored = convert_weights(
        safetensors::File(path), Dtype::f32, model.parameters(), weights, engine.context.cpu);
    const std::string there = path + precision_name(weights);
    const safetensors::Written written = safetensors::write(there, stored.tensors);
    EXPECT_NEAR(static_cast<double>(written.bytes), share * whole, 0.04 * whole);
    test::Engine other(1);
    other.context.weights = weights;
    Model light(spec, vocabulary, vocabulary, other.context, 0, Model::Weights::none);
    load_frozen(safetensors::File(there), weights, light);
    EXPECT_LT(static_cast<double>(other.arena.statistics().peak), (share + 0.2) * whole);
    std::filesystem::remove(there);
  }
}

TEST_F(StoredWeights, WhatDoesNotFitIsNamed) {
  const ModelSpec spec = small("deep", "gru");
  Model model(spec, vocabulary, vocabulary, engine.context, 7);
  safetensors::write(path, views(model));
  ConvertedWeights good = convert_weights(safetensors::File(path), Dtype::f32, model.parameters(),
                                          Dtype::i8, engine.context.cpu);
  ASSERT_EQ(good.tensors[0].dtype, safetensors::FileDtype::i8);
  ASSERT_EQ(good.tensors[1].name, good.tensors[0].name + ".scales");
  std::vector<safetensors::View> tensors = good.tensors;
  tensors.erase(tensors.begin() + 1);
  expect_refused(spec, tensors, "lacks " + good.tensors[1].name);
  tensors = good.tensors;
  tensors[1].shape = {vocabulary - 1};
  expect_refused(spec, tensors, "is F32 [36], expected F32 [37]");
  tensors = good.tensors;
  tensors[0] = safetensors::View(model.parameters().all().front().name,
                                 model.parameters().all().front().value);
  expect_refused(spec, tensors, "is F32 [37,24], expected I8 [37,24]");
  good.memory[0][5] = std::byte{0x80};
  expect_refused(spec, good.tensors, "element 5 is -128");
  good.memory[0][5] = std::byte{0};
  const float wrong = -1.0f;
  std::memcpy(good.memory[1].data() + 8, &wrong, sizeof wrong);
  expect_refused(spec, good.tensors, "scale 2 is -1");
}

TEST_F(StoredWeights, AWeightThatCannotBeRoundedIsNamed) {
  const ModelSpec spec = small("deep", "gru");
  Model model(spec, vocabulary, vocabulary, engine.context, 7);
  Parameter& table = model.parameters().all().front();
  table.value.f32()[3] = INFINITY;
  safetensors::write(path, views(model));
  for (const Dtype weights : {Dtype::i8, Dtype::bf16}) {
    try {
      convert_weights(safetensors::File(path), Dtype::f32, model.parameters(), weights,
                      engine.context.cpu);
      ADD_FAILURE() << precision_name(weights);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      EXPECT_NE(std::string(error.what()).find("tensor " + table.name + ": a weight is inf"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace nmt
