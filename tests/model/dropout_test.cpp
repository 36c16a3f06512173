#include "model/architecture.h"
#include "model/model.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int source_size = 23, target_size = 19;

ModelSpec spec_without_dropout(const std::string& type) {
  ModelSpec spec;
  spec.type = parse_enum<ModelType>(type, "type");
  spec.enc_cell = spec.dec_cell = "gru";
  spec.dim_emb = 32;
  spec.dim_rnn = 16;
  spec.enc_depth = spec.dec_depth = type == "deep" ? 2 : 1;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  return spec;
}

Batch batch_of(int sentences, int longest) {
  Rng rng(8);
  std::vector<Ids> source(sentences), target(sentences);
  for (auto* side : {&source, &target})
    for (Ids& ids : *side) {
      ids.resize(rng.below(longest + 1));
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(3 + rng.below(target_size - 3));
    }
  std::vector<const Ids*> s, t;
  for (int i = 0; i < sentences; ++i) s.push_back(&source[i]), t.push_back(&target[i]);
  return make_batch(s, t, 1, 2);
}

std::vector<double> gradient_of(Model& model, const std::string& name, const Batch& batch,
                                std::uint64_t pass) {
  for (Parameter& p : model.parameters().all())
    std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
  model.accumulate_gradients(batch, {0, 7, pass});
  return test::doubles(model.parameters().find(name)->gradient);
}

// With a softmax table of zeros every symbol has probability 1/V, so the table's gradient at a
// batch of one token is (1/V - [v is the target]) r with r the readout: it shows what dropout did
// to r.
TEST(ModelDropout, OnTheReadoutAlone) {
  const Batch batch = batch_of(1, 0);
  ASSERT_EQ(batch.target_tokens, 1);
  for (const char* type : {"rnnsearch", "deep"})
    for (const double p : {0.5, 0.2}) {
      ModelSpec spec = spec_without_dropout(type);
      spec.tied_embeddings = false;
      test::Engine engine(1);
      Model plain(spec, source_size, target_size, engine.context, 3);
      spec.dropout_readout = p;
      Model dropped(spec, source_size, target_size, engine.context, 3);
      for (Model* model : {&plain, &dropped}) {
        Parameter& table = *model->parameters().find("decoder.output");
        std::fill_n(table.value.f32(), table.shape.elements(), 0.0f);
      }
      const std::vector<double> whole = gradient_of(plain, "decoder.output", batch, 0);
      double zeros = 0;
      const int passes = 60;
      for (int pass = 0; pass < passes; ++pass) {
        const std::vector<double> part = gradient_of(dropped, "decoder.output", batch, pass);
        for (int e = 0; e < spec.dim_emb; ++e) {
          const bool gone = part[e] == 0;
          zeros += gone;
          for (int v = 0; v < target_size; ++v) {
            const double expected = gone ? 0 : whole[v * spec.dim_emb + e] / (1 - p);
            ASSERT_NEAR(part[v * spec.dim_emb + e], expected, 1e-6);
          }
        }
      }
      const double draws = passes * spec.dim_emb;
      EXPECT_NEAR(zeros / draws, p, 5 * std::sqrt(p * (1 - p) / draws));
      EXPECT_EQ(plain.evaluate(batch).cross_entropy, dropped.evaluate(batch).cross_entropy);
    }
}

// Every kind of dropout alone, per step and per sentence: the masks change the loss, a pass is the
// same again, another is not, and the gradient is that of the masked loss (central differences
// along the gradient itself).
TEST(ModelDropout, GradientsOfMaskedLosses) {
  const Batch batch = batch_of(6, 6);
  for (const char* type : {"rnnsearch", "deep"})
    for (double ModelSpec::*kind : {&ModelSpec::dropout_emb, &ModelSpec::dropout_rnn,
                                    &ModelSpec::dropout_readout, &ModelSpec::dropout_state}) {
      double losses[2] = {};
      for (const bool variational : {false, true}) {
        ModelSpec spec = spec_without_dropout(type);
        spec.*kind = 0.3;
        spec.dropout_variational = variational;
        test::Engine engine(1);
        Model model(spec, source_size, target_size, engine.context, 3);
        const auto loss = [&](std::uint64_t pass) {
          return model.accumulate_gradients(batch, {0, 7, pass}).cross_entropy;
        };
        const double first = losses[variational] = loss(1);
        EXPECT_EQ(loss(1), first);
        EXPECT_NE(loss(2), first);
        EXPECT_GT(std::abs(model.evaluate(batch).cross_entropy - first), 1e-3);
        for (const char* name : {"encoder.embedding", "decoder.embedding", "decoder.readout"}) {
          const std::vector<double> gradient = gradient_of(model, name, batch, 1);
          Parameter& p = *model.parameters().find(name);
          double square = 0;
          for (double g : gradient) square += g * g;
          const std::vector<float> keep(p.value.f32(), p.value.f32() + p.shape.elements());
          const double length = std::sqrt(square), step = 1e-3;
          const auto at = [&](double move) {
            for (std::size_t i = 0; i < keep.size(); ++i)
              p.value.f32()[i] = static_cast<float>(keep[i] + move * gradient[i] / length);
            return loss(1);
          };
          const double measured = (at(step) - at(-step)) / (2 * step);
          at(0);
          EXPECT_NEAR(measured, length, 0.01 * length) << type << ' ' << name << ' ' << variational;
        }
      }
      // The readouts are rows of real tokens, without steps, and the state's mask is one for all
      // steps: the option leaves both alone.
      if (kind == &ModelSpec::dropout_readout || kind == &ModelSpec::dropout_state)
        EXPECT_EQ(losses[0], losses[1]);
      else
        EXPECT_NE(losses[0], losses[1]);
    }
}

// What several processes compute, or the halves of a batch that is too large: gradients and losses
// of parts sum to the whole's.
TEST(ModelDropout, PartsOfABatchDrawItsMasks) {
  const Batch batch = batch_of(7, 6);
  const std::vector<std::vector<Batch>> cuts = {
      {take(batch, {0, 2}), take(batch, {1, 2})},
      {slice(batch, 0, 4), slice(batch, 4, 3)},
      {slice(take(batch, {0, 2}), 0, 1), slice(take(batch, {0, 2}), 1, 3), take(batch, {1, 2})}};
  for (const Architecture& architecture : architectures())
    for (const bool variational : {false, true}) {
      const std::string type(architecture.name());
      ModelSpec spec = spec_without_dropout(type);
      const LayerLimits layers = architecture.common_layers();
      spec.enc_depth = spec.dec_depth = std::clamp(2, layers.min, layers.max);
      spec.dim_emb = spec.dim_rnn = 18;  // rows that begin within four random words
      spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = spec.dropout_state = 0.3;
      spec.dropout_variational = variational;
      test::Engine engine(1);
      Model model(spec, source_size, target_size, engine.context, 3);
      const auto gradients = [&](const std::vector<Batch>& parts, double& loss) {
        for (Parameter& p : model.parameters().all())
          std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
        loss = 0;
        for (const Batch& part : parts)
          loss += model.accumulate_gradients(part, {0.1f, 7, 3}).smoothed;
        std::vector<std::vector<double>> all;
        for (Parameter& p : model.parameters().all()) all.push_back(test::doubles(p.gradient));
        return all;
      };
      double expected_loss = 0, loss = 0;
      const auto expected = gradients({batch}, expected_loss);
      for (const std::vector<Batch>& cut : cuts) {
        const auto found = gradients(cut, loss);
        EXPECT_NEAR(loss, expected_loss, 1e-5 * expected_loss) << type << ' ' << variational;
        for (std::size_t p = 0; p < found.size(); ++p) {
          double largest = 0, difference = 0;
          for (std::size_t i = 0; i < found[p].size(); ++i) {
            largest = std::max(largest, std::abs(expected[p][i]));
            const double d = std::abs(expected[p][i] - found[p][i]);
            if (!(d <= difference)) difference = d;  // also NaN
          }
          EXPECT_LE(difference, 1e-4 * largest + 1e-6)
              << type << ' ' << variational << ' ' << model.parameters().all()[p].name;
        }
      }
    }
}

TEST(ModelInit, DrawsEveryMatrixAndNoBias) {
  ModelSpec spec = spec_without_dropout("deep");
  spec.init = Initialization::uniform;
  test::Engine engine(1);
  Model model(spec, source_size, target_size, engine.context, 3);
  int matrices = 0;
  for (const Parameter& p : model.parameters().all()) {
    double least = 1e9, most = -1e9;
    for (double value : test::doubles(p.value))
      least = std::min(least, value), most = std::max(most, value);
    if (p.shape.rank() == 1) {  // biases and gains
      EXPECT_TRUE(least == most && (most == 0 || most == 1)) << p.name;
    } else {
      ++matrices;
      EXPECT_TRUE(least >= -0.08f && most <= 0.08f && most > 0.06 && least < -0.06)
          << p.name << ' ' << least << ' ' << most;
    }
  }
  EXPECT_GT(matrices, 15);
}

}  // namespace
}  // namespace nmt
