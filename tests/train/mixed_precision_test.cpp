// Training with inputs of products rounded to bfloat16 (kernels::ProductMethod::bfloat16()), or to
// three numbers of it (bfloat16x3()), against training in float32.

#include "kernels/products/product_method.h"
#include "model/model.h"
#include "tests/support/engine.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nmt::train {
namespace {

constexpr int vocabulary = 40, steps = 6;

struct Mixed : test::Engine {
  explicit Mixed(bool bfloat16) : Engine(1) {
    if (bfloat16) context.cpu.products = &kernels::ProductMethod::bfloat16();
  }
};

ModelSpec small(ModelType type, const std::string& unit) {
  ModelSpec spec;
  spec.type = type;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = spec.dim_rnn = 18;
  if (type == ModelType::deep || type == ModelType::gnmt) spec.enc_depth = spec.dec_depth = 2;
  if (type == ModelType::rnnsearch) spec.enc_depth = spec.dec_depth = 1;
  spec.positions = 4;
  return spec;
}

// Sentences whose target is the source in reverse.
Batch reversals(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Ids> sources(9), targets(9);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].resize(2 + rng.below(steps - 2));
    for (std::int32_t& id : sources[i])
      id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
    targets[i].assign(sources[i].rbegin(), sources[i].rend());
  }
  std::vector<const Ids*> s, t;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    s.push_back(&sources[i]);
    t.push_back(&targets[i]);
  }
  return make_batch(s, t, 1, 2);
}

struct Gradients {
  std::vector<double> values;
  double loss;
};

Gradients gradients_of(const ModelSpec& spec, Mixed& engine,
                       const std::function<void(Parameter&)>& change = nullptr) {
  Model model(spec, vocabulary, vocabulary, engine.context, 3);
  if (change)
    for (Parameter& p : model.parameters().all()) change(p);
  Gradients out;
  out.loss = model.accumulate_gradients(reversals(1), {0.1f, 1, 0}).smoothed;
  for (const Parameter& p : model.parameters().all())
    out.values.insert(out.values.end(), p.gradient.f32(), p.gradient.f32() + p.gradient.elements());
  return out;
}

double product_of(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double norm_of(const std::vector<double>& a) {
  return std::sqrt(product_of(a, a));
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference = a;
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] -= b[i];
  return norm_of(difference) / norm_of(b);
}

// How far one rounding of every weight moves the gradients of a model in float32: the root mean
// square of four trials with independent relative errors, uniform within 2^-8, the largest of
// bfloat16.
double one_rounding(const ModelSpec& spec, const Gradients& exact) {
  double squares = 0;
  for (std::uint64_t trial = 0; trial < 4; ++trial) {
    Mixed engine(false);
    Rng rng(50 + trial);
    const Gradients moved = gradients_of(spec, engine, [&](Parameter& p) {
      for (std::int64_t i = 0; i < p.value.elements(); ++i)
        p.value.f32()[i] *= 1 + 0x1p-8f * (2 * rng.uniform() - 1);
    });
    const double moves = relative_difference(moved.values, exact.values);
    squares += moves * moves / 4;
  }
  return std::sqrt(squares);
}

std::vector<ModelSpec> all_models() {
  std::vector<ModelSpec> specs;
  for (const char* unit : {"gru", "lrn", "sru", "lstm", "atr"})
    specs.push_back(small(ModelType::deep, unit));
  specs.push_back(small(ModelType::gnmt, "lstm"));
  specs.push_back(small(ModelType::rnnsearch, "gru"));
  specs.back().groups = 2;  // batched products
  specs.back().rearrange = true;
  specs.push_back(small(ModelType::deep, "olrn"));
  specs.back().attention = AttentionType::dot;
  specs.back().heads = 3;
  specs.back().context_aware = true;
  for (const EncoderMixer mixer : {EncoderMixer::recurrent, EncoderMixer::attention}) {  // students
    specs.push_back(small(ModelType::block, "ssru"));
    specs.back().enc_depth = specs.back().dec_depth = 2;
    specs.back().attention = AttentionType::dot;
    specs.back().heads = 3;
    specs.back().block.encoder_mixer = mixer;
    if (mixer == EncoderMixer::attention) specs.back().block.encoder_heads = 3;
    specs.back().block.embedding_scale = EmbeddingScale::sqrt;
  }
  return specs;
}

TEST(MixedPrecision, GradientsOfWholeModelsAreThoseOfFloat32) {
  for (const ModelSpec& spec : all_models()) {
    SCOPED_TRACE(std::string(name_of(spec.type)) + " " + spec.enc_cell);
    Mixed float32(false), bfloat16(true);
    const Gradients expected = gradients_of(spec, float32), found = gradients_of(spec, bfloat16);
    ASSERT_EQ(found.values.size(), expected.values.size());
    // Weights are one of the two inputs of the products with weights, forward and backward;
    // activations and gradients are rounded too. That is three roundings in place of one, which
    // move the gradients sqrt(3) times as far. Three such deviations are allowed.
    const double bound = 3 * std::sqrt(3.0) * one_rounding(spec, expected);
    const double relative = relative_difference(found.values, expected.values);
    const double cosine = product_of(found.values, expected.values) / norm_of(expected.values) /
                          norm_of(found.values);
    RecordProperty(fmt::format("{} {}", name_of(spec.type), spec.enc_cell),
                   fmt::format("{:.4f} of {:.4f}", relative, bound));
    EXPECT_LE(bound, 0.7) << "a wrong gradient would pass";
    EXPECT_LE(relative, bound);
    EXPECT_GE(relative, 0x1p-12) << "the inputs of products are not rounded";
    EXPECT_GE(cosine, 1 - bound * bound / 2);
    EXPECT_NEAR(found.loss, expected.loss, bound * expected.loss);
  }
}

TEST(MixedPrecision, GradientsOfThreeNumbersHaveThePrecisionOfFloat32) {
  const kernels::ProductMethod* const split = kernels::ProductMethod::bfloat16x3();
  if (!split) GTEST_SKIP() << "needs AMX";
  for (const ModelSpec& spec : all_models()) {
    SCOPED_TRACE(std::string(name_of(spec.type)) + " " + spec.enc_cell);
    Mixed float32(false), in_three(false);
    in_three.context.cpu.products = split;
    const Gradients expected = gradients_of(spec, float32), found = gradients_of(spec, in_three);
    // Of the largest models about 1e-6.
    EXPECT_LE(relative_difference(found.values, expected.values), 5e-6);
    EXPECT_GT(relative_difference(found.values, expected.values), 0) << "the same products";
    EXPECT_NEAR(found.loss, expected.loss, 1e-6 * expected.loss);
  }
}

// Losses of 80 updates on new batches; the mean of the last 20.
double trained_loss(bool bfloat16, std::uint64_t seed) {
  Mixed engine(bfloat16);
  Model model(small(ModelType::deep, "gru"), vocabulary, vocabulary, engine.context, seed);
  TrainSpec spec;
  spec.optimizer = UpdateRule::adam;
  Optimizer optimizer(spec, model.parameters(), engine.context);
  double sum = 0, tokens = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    const Batch batch = reversals(100 + i);
    const double loss = model.accumulate_gradients(batch, {0, seed, i}).cross_entropy;
    optimizer.update(5e-3, batch.target_tokens);
    if (i < 60) continue;
    sum += loss;
    tokens += static_cast<double>(batch.target_tokens);
  }
  return sum / tokens;
}

TEST(MixedPrecision, AShortTrainingLearnsAsMuch) {
  std::vector<double> float32, differences;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    float32.push_back(trained_loss(false, seed));
    differences.push_back(trained_loss(true, seed) - float32.back());
  }
  const auto [least, most] = std::minmax_element(float32.begin(), float32.end());
  double mean = 0;
  for (const double d : differences) mean += d / static_cast<double>(differences.size());
  EXPECT_LT(*most, std::log(vocabulary) - 0.3) << "nothing was learned";
  EXPECT_LE(std::abs(mean), *most - *least);
  EXPECT_NE(mean, 0.0);
}

}  // namespace
}  // namespace nmt::train
