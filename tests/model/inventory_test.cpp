#include "model/inventory.h"

#include "model/architecture.h"
#include "model/decoding/model_scorer.h"
#include "model/memory_estimate.h"
#include "tests/support/engine.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int symbols = 300;

ModelSpec medium(ModelType type, const std::string& unit) {
  ModelSpec spec;
  spec.type = type;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = spec.dim_rnn = 48;
  const LayerLimits layers = architecture_of(spec).common_layers();
  spec.enc_depth = spec.dec_depth = std::clamp(3, layers.min, layers.max);
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.1;
  return spec;
}

std::vector<ModelSpec> specs() {
  std::vector<ModelSpec> all;
  for (const Architecture& architecture : architectures()) {
    for (const char* unit : {"lrn", "lstm"}) all.push_back(medium(architecture.type, unit));
    if (architecture.context_aware) {
      all.push_back(medium(architecture.type, "gru"));
      all.back().context_aware = true;
      all.back().layer_normalization = false;
    }
    if (architecture.without_attention) {
      all.push_back(medium(architecture.type, "gru"));
      all.back().attention = AttentionType::none;
    }
  }
  for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer}) {
    all.push_back(medium(ModelType::deep, "gru"));
    all.back().attention_projections = true;
    all.back().attention_query = query;
    all.back().heads = 4;
  }
  all.push_back(medium(ModelType::block, "ssru"));
  all.back().block.encoder_mixer = EncoderMixer::attention;
  all.back().block.feed_forward = FeedForwardKind::relu;
  all.back().heads = 4;
  all.push_back(medium(ModelType::seq2seq, "lstm"));
  all.back().groups = 4;
  all.back().dense_first_decoder_layer = true;
  all.back().dim_enc_upper = 96;
  all.push_back(all.back());
  all.back().upper_context = false;
  return all;
}

Batch batch_of(int sentences, int length) {
  const std::vector<Ids> ids(sentences, Ids(length - 1, 5));
  std::vector<const Ids*> pointers;
  for (const Ids& sentence : ids) pointers.push_back(&sentence);
  return make_batch(pointers, pointers, 1, 2);
}

TEST(Inventory, PartsAddUp) {
  for (const ModelSpec& spec : specs()) {
    Model model(spec, symbols, symbols, Context{}, 1);
    const Inventory inventory = take_inventory(model);
    EXPECT_EQ(inventory.parameters(), model.parameters().elements()) << name_of(spec.type);
    EXPECT_EQ(inventory.embeddings(), 2 * symbols * spec.dim_emb) << name_of(spec.type);
    for (const Inventory::Part& part : inventory.parts)
      EXPECT_LE(part.weights, part.parameters) << name_of(spec.type) << ' ' << part.name;
  }
}

// The activations of a pass over such a batch, in bytes: what the arena saw, and what is estimated.
struct Activations {
  double seen = 0, estimated = 0;
  explicit Activations(const ModelSpec& spec) {
    test::Engine engine(1);
    Model model(spec, symbols, symbols, engine.context, 1);
    const double before = static_cast<double>(engine.arena.statistics().in_use);
    model.accumulate_gradients(batch_of(16, 20), {0.1f, 1, 0});
    seen = static_cast<double>(engine.arena.statistics().peak) - before;
    estimated = static_cast<double>(
        training_memory(model, take_inventory(model), {16, 20, 20}, 2, true).activations);
  }
};

// The values that attention reads are the annotations or their projection: both counts by hand.
TEST(Inventory, ProjectionsOfAttention) {
  ModelSpec spec = medium(ModelType::deep, "gru");
  spec.dim_attention = 32;
  const auto of = [&](bool projected) {
    spec.attention_projections = projected;
    Model model(spec, symbols, symbols, Context{}, 1);
    return take_inventory(model);
  };
  const Inventory plain = of(false), projected = of(true);
  EXPECT_EQ(plain.attention_products(), 32 + 48);
  EXPECT_EQ(projected.attention_products(), 32 + 32);
  EXPECT_EQ(projected.products("source token") - plain.products("source token"), 48 * 32);
  EXPECT_EQ(projected.products("target token") - plain.products("target token"), 32 * 48);
  EXPECT_EQ(projected.parameters() - plain.parameters(), 2 * 48 * 32);
}

// What matrices read rearranged is kept beside what it was made of.
TEST(Inventory, RearrangedRowsAreEstimated) {
  std::vector<ModelSpec> all;
  for (const Architecture& architecture : architectures())
    for (const char* unit : {"lrn", "gru"}) {
      all.push_back(medium(architecture.type, unit));
      all.back().context_aware = all.back().type == ModelType::deep && all.back().enc_cell == "gru";
    }
  for (ModelSpec& spec : all) {
    spec.groups = 4;
    const Activations plain(spec);
    spec.rearrange = true;
    const Activations rearranged(spec);
    const double more = rearranged.seen - plain.seen;
    EXPECT_NEAR(rearranged.estimated - plain.estimated, more, 0.1 * more)
        << name_of(spec.type) << ' ' << spec.enc_cell;
  }
}

// Bytes that a batch of 16 sources of 20 tokens keeps while it is decoded, beside hypotheses, and
// what is estimated.
std::pair<double, double> source_memory(const ModelSpec& spec, Dtype weights) {
  test::Engine engine(1);
  engine.context.weights = weights;
  Model model(spec, symbols, symbols, engine.context, 1);
  model.freeze();
  const Inventory inventory = take_inventory(model);
  ModelScorer scorer(model, 1, 2);
  const std::size_t before = engine.arena.statistics().in_use;
  const std::vector<Ids> sources(16, Ids(19, 5));
  const auto decoding = scorer.begin(sources, false);
  return {static_cast<double>(engine.arena.statistics().in_use - before),
          static_cast<double>(
              decoding_memory(spec, inventory, symbols, {16, 20, 20}, 4, weights).source)};
}

// Keys and values of dot-product attention are int8 where the weights are. What else a batch keeps
// is the same with both kinds of weights.
TEST(Inventory, Int8KeysAndValuesAreEstimated) {
  std::vector<ModelSpec> all(2, medium(ModelType::block, "ssru"));
  all[1] = medium(ModelType::deep, "gru");
  for (ModelSpec& spec : all) {
    spec.dim_emb = spec.dim_rnn = 64;
    spec.attention = AttentionType::dot;
    spec.heads = 4;
    const auto [wide, wide_estimate] = source_memory(spec, Dtype::f32);
    const auto [narrow, narrow_estimate] = source_memory(spec, Dtype::i8);
    EXPECT_LT(narrow, 0.6 * wide) << name_of(spec.type);
    EXPECT_NEAR(wide_estimate - narrow_estimate, wide - narrow, 0.05 * (wide - narrow))
        << name_of(spec.type);
  }
}

// The estimates against what the arena saw.
TEST(Inventory, MemoryIsAsEstimated) {
  const BatchSize size{16, 20, 20};
  for (const ModelSpec& spec : specs()) {
    const std::string name = std::string(name_of(spec.type)) + " " + spec.enc_cell;
    test::Engine engine(1);
    Model model(spec, symbols, symbols, engine.context, 1);
    const Inventory inventory = take_inventory(model);
    const double before = static_cast<double>(engine.arena.statistics().in_use);
    model.accumulate_gradients(batch_of(16, 20), {0.1f, 1, 0});
    const double activations = static_cast<double>(engine.arena.statistics().peak) - before;
    const TrainingMemory training = training_memory(model, inventory, size, 2, true);
    EXPECT_NEAR(static_cast<double>(training.weights + training.gradients), before, 0.02 * before)
        << name;
    EXPECT_NEAR(static_cast<double>(training.activations), activations, 0.25 * activations) << name;
    EXPECT_EQ(training.optimizer, 2 * training.weights) << name;
    EXPECT_EQ(training.average, training.weights) << name;
  }
}

}  // namespace
}  // namespace nmt
