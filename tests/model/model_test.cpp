#include "model/model.h"

#include "core/error.h"
#include "model/architecture.h"
#include "model/check.h"
#include "model/model_scorer.h"
#include "nn/unit_registry.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int source_size = 23, target_size = 19;
constexpr std::int32_t bos = 1, eos = 2;

std::vector<Ids> random_sentences(Rng& rng, int n, int vocabulary, int longest) {
  std::vector<Ids> out(n);
  for (Ids& ids : out) {
    ids.resize(1 + rng.below(longest));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
  }
  return out;
}

Batch batch_of(const std::vector<Ids>& sources, const std::vector<Ids>& targets) {
  std::vector<const Ids*> s, t;
  for (const Ids& ids : sources) s.push_back(&ids);
  for (const Ids& ids : targets) t.push_back(&ids);
  return make_batch(s, t, bos, eos);
}

ModelSpec small(const std::string& type, const std::string& unit) {
  ModelSpec spec;
  spec.type = parse_enum<ModelType>(type, "type");
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = 12;
  spec.dim_rnn = 10;
  const LayerLimits layers = architecture_of(spec).common_layers();
  spec.enc_depth = spec.dec_depth = std::clamp(2, layers.min, layers.max);
  spec.positions = 4;
  spec.state_heads = 2;
  spec.state_width = 3;
  return spec;
}

std::vector<ModelSpec> specs() {
  std::vector<ModelSpec> all;
  for (const Architecture& architecture : architectures()) {
    ModelSpec spec = small(std::string(architecture.name()), "gru");
    if (architecture.readout == ReadoutKind::none) spec.dim_emb = spec.dim_rnn;
    all.push_back(spec);
  }
  for (const char* type : {"rnnsearch", "deep"})
    for (const char* unit : {"lrn", "olrn", "gru", "lstm"})
      for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer}) {
        ModelSpec spec = small(type, unit);
        spec.attention_query = query;
        all.push_back(spec);
      }
  for (const char* unit : {"lrn", "lstm"}) {
    for (const char* type : {"rnnsearch", "deep"}) {
      ModelSpec spec = small(type, unit);
      spec.context_aware = true;
      all.push_back(spec);
    }
    for (const AttentionType attention : {AttentionType::none, AttentionType::additive}) {
      ModelSpec spec = small("seq2seq", unit);
      spec.attention = attention;
      spec.enc_depth = 3;
      all.push_back(spec);
    }
    ModelSpec spec = small("gnmt", unit);
    spec.dim_emb = spec.dim_rnn;
    spec.enc_depth = spec.dec_depth = 3;
    all.push_back(spec);
    spec.attention_query = AttentionQuery::recurrent;
    spec.layer_normalization = false;
    all.push_back(spec);
  }
  for (const auto& [type, unit, rearrange] : {std::tuple{"rnnsearch", "gru", true},
                                              {"rnnsearch", "lrn", true},
                                              {"deep", "lstm", false},
                                              {"deep", "gru", true},
                                              {"deep", "olrn", true}}) {
    ModelSpec spec = small(type, unit);
    spec.groups = 2;
    spec.rearrange = rearrange;
    spec.context_aware = rearrange && spec.enc_cell == "gru";
    all.push_back(spec);
  }
  for (const std::string& unit : unit_names()) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const ModelSpec& other) { return other.dec_cell == unit; }))
      continue;
    all.push_back(small("deep", unit));
    if (unit != "ran" && unit != "elstm1") continue;
    all.push_back(small("rnnsearch", unit));
    all.back().attention_query = AttentionQuery::first_layer;
    all.push_back(small("deep", unit));
    all.back().context_aware = true;
  }
  for (const char* unit : {"gla", "mamba"}) {  // states in rows of a matrix
    all.push_back(small("rnnsearch", unit));
    all.push_back(small("block", unit));
  }
  for (const char* unit :
       {"ran", "elstm1"}) {  // an output that follows from the state; vectors of each position
    all.push_back(small("deep", unit));
    all.back().context_aware = true;
    all.push_back(small("gnmt", unit));
    all.back().dim_emb = all.back().dim_rnn;
  }
  for (const auto& [type, unit, kind] : {std::tuple{"deep", "lrn", GateInit::chrono},
                                         {"rnnsearch", "atr", GateInit::constant},
                                         {"seq2seq", "ssru", GateInit::chrono}}) {
    all.push_back(small(type, unit));
    all.back().layer_normalization = false;
    all.back().context_aware = all.back().type == ModelType::deep;
    all.back().gate_init = kind;
  }
  // Starts that depend on the unit and the layer; convolutions, which search continues.
  for (const auto& [type, unit, taps] : {std::tuple{"rnnsearch", "slstm", 0},
                                         {"seq2seq", "slstm", 2},
                                         {"gnmt", "slstm", 3},
                                         {"block", "slstm", 4},
                                         {"rnnsearch", "hgrn", 3},
                                         {"seq2seq", "hgrn", 0},
                                         {"gnmt", "hgrn", 0},
                                         {"block", "hgrn", 2},
                                         {"block", "mamba", 4},
                                         {"deep", "srn", 2},
                                         {"deep", "lrn", 3}}) {
    all.push_back(small(type, unit));
    ModelSpec& added = all.back();
    added.convolution = taps;
    if (added.type == ModelType::gnmt) added.dim_emb = added.dim_rnn;
    if (added.type == ModelType::seq2seq) added.attention = AttentionType::none;
    if (added.type == ModelType::rnnsearch) added.groups = 2;
    added.context_aware = added.dec_cell == "lrn";
  }
  ModelSpec spec = small("deep", "gru");
  spec.context_aware = true;
  spec.attention_query = AttentionQuery::first_layer;
  all.push_back(spec);
  spec = small("seq2seq", "gru");
  spec.attention_query = AttentionQuery::first_layer;
  all.push_back(spec);
  spec.attention = AttentionType::none;
  spec.attention_query = std::nullopt;
  spec.enc_depth = spec.dec_depth = 1;
  all.push_back(spec);
  spec = small("deep", "gru");
  spec.layer_normalization = false;
  spec.bias = true;
  spec.attention = AttentionType::dot;
  spec.heads = 2;
  spec.reset = ResetPlace::after;
  spec.tied_embeddings = false;
  all.push_back(spec);
  spec.attention_query = AttentionQuery::first_layer;
  spec.enc_depth = 1;
  spec.dec_depth = 3;
  all.push_back(spec);
  for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer})
    for (const AttentionType kind : {AttentionType::additive, AttentionType::dot}) {
      spec = small("deep", kind == AttentionType::dot ? "gru" : "lrn");
      spec.attention = kind;
      spec.attention_query = query;
      spec.attention_projections = true;
      spec.heads = 2;
      spec.dim_attention = 8;
      all.push_back(spec);
    }
  // As in the GROUP paper: a dense first decoder layer, wider upper encoder layers.
  spec = small("seq2seq", "lstm");
  spec.groups = 2;
  spec.rearrange = true;
  spec.dense_first_decoder_layer = true;
  spec.enc_depth = 3;
  spec.dim_enc_upper = 14;
  all.push_back(spec);
  spec.upper_context = false;
  all.push_back(spec);
  for (const char* unit : {"ssru", "lstm"})
    for (const EncoderMixer mixer : {EncoderMixer::recurrent, EncoderMixer::attention}) {
      spec = small("block", unit);
      spec.block.encoder_mixer = mixer;
      if (mixer == EncoderMixer::attention)
        spec.block.encoder_heads = 3;
      else
        spec.block.encoder_directions = EncoderDirections::joined;
      if (spec.dec_cell == "lstm") {
        spec.heads = 2;
        spec.attention = AttentionType::dot;
        spec.dim_attention = 8;
        spec.block.gate_branch = GateBranch::none;
        spec.block.feed_forward = FeedForwardKind::relu;
        spec.block.decoder_feed_forward = FeedForwardKind::none;
      } else {
        spec.layer_normalization = false;
        spec.block.gate_branch = GateBranch::silu;
        spec.block.feed_forward_width = 9;
      }
      all.push_back(spec);
    }
  spec.enc_cell = spec.dec_cell = "elstm1";  // vectors of each position
  all.push_back(spec);
  spec = small("deep", "gru");
  spec.groups = 2;
  spec.rearrange = true;
  spec.dense_first_decoder_layer = true;
  spec.attention_projections = true;
  spec.dim_enc_upper = 6;
  all.push_back(spec);
  return all;
}

std::string name_of(const ModelSpec& s) {
  return std::string(name_of(s.type)) + (s.context_aware ? " context-aware " : " ") + s.enc_cell +
         " " + (s.attention_query ? std::string(name_of(*s.attention_query)) : "auto") + " " +
         std::string(name_of(s.attention)) + (s.layer_normalization ? " normalized" : "") +
         (s.attention_projections ? " projected" : "") + (s.groups > 1 ? " groups" : "") +
         (s.rearrange ? " rearranged" : "") +
         (architecture_of(s).has_blocks()
              ? fmt::format(" {} {}", name_of(s.block.encoder_mixer), name_of(s.block.feed_forward))
              : "") +
         (s.dense_first_decoder_layer ? " first dense" : "") +
         (s.convolution > 0 ? " convolved" : "");
}

// The gradient along a random direction against the loss's central difference.
TEST(Model, gradient_along_a_direction) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine(1);  // quick on a busy machine; threads are tested elsewhere
    Model model(spec, source_size, target_size, engine.context, 3);
    const Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                                 random_sentences(engine.rng, 9, target_size, 6));
    const float smoothing = 0.1f;
    const BatchLoss loss = model.accumulate_gradients(batch, {smoothing, 1, 0});
    EXPECT_EQ(loss.tokens, batch.target_tokens);
    EXPECT_NEAR(loss.smoothed, model.evaluate(batch, smoothing).smoothed,
                1e-4 * std::abs(loss.smoothed));
    for (Parameter& chosen : model.parameters().all()) {
      const std::int64_t n = chosen.shape.elements();
      std::vector<float> keep(chosen.value.f32(), chosen.value.f32() + n), direction(n);
      double expected = 0, norm = 0, gradient_norm = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        direction[i] = engine.rng.normal();
        norm += direction[i] * direction[i];
        gradient_norm += chosen.gradient.f32()[i] * chosen.gradient.f32()[i];
      }
      // Half of it along the gradient itself, so that the difference stands out of the rounding.
      for (std::int64_t i = 0; i < n; ++i)
        direction[i] =
            static_cast<float>(direction[i] / std::sqrt(norm) +
                               chosen.gradient.f32()[i] / std::sqrt(gradient_norm + 1e-12));
      for (std::int64_t i = 0; i < n; ++i) expected += chosen.gradient.f32()[i] * direction[i];
      const auto at = [&](float step) {
        for (std::int64_t i = 0; i < n; ++i) chosen.value.f32()[i] = keep[i] + step * direction[i];
        return model.evaluate(batch, smoothing).smoothed;
      };
      const float step = 2e-4f;
      const double measured = (at(step) - at(-step)) / (2 * step);
      at(0);
      EXPECT_NEAR(measured, expected, 0.02 * std::abs(expected) + 0.02)
          << name_of(spec) << ' ' << chosen.name;
    }
  }
}

// Convolutions start as the identity, which reads no earlier step.
void change_convolutions(Model& model) {
  Rng rng(7);
  for (Parameter& p : model.parameters().all())
    if (p.name.ends_with("convolution"))
      for (std::int64_t i = 0; i < p.shape.elements(); ++i) p.value.f32()[i] = 0.5f * rng.normal();
}

// log p of given targets, one step at a time through the scorer.
std::vector<double> step_by_step(ModelScorer& scorer, const std::vector<Ids>& sources,
                                 const std::vector<Ids>& targets, bool want_attention = false) {
  const std::unique_ptr<Decoding> decoding = scorer.begin(sources, want_attention);
  std::vector<double> sums(sources.size());
  std::vector<std::int32_t> parents(sources.size()), tokens(sources.size(), bos),
      live(sources.size());
  std::iota(parents.begin(), parents.end(), 0);
  std::iota(live.begin(), live.end(), 0);
  for (std::size_t t = 0; !live.empty(); ++t) {
    const DecodingStep step = decoding->advance(parents, tokens);
    std::vector<std::int32_t> still;
    parents.clear();
    tokens.clear();
    std::vector<float> log_probs;  // [live,V]
    for_each_block(*decoding, step, [&](int, const NextTokens& next) {
      for (int i = 0; i < next.rows * next.vocabulary; ++i)
        log_probs.push_back(next.logits[i] - next.log_normalizer[i / next.vocabulary]);
    });
    const std::size_t vocabulary = log_probs.size() / live.size();
    for (std::size_t r = 0; r < live.size(); ++r) {
      const Ids& target = targets[live[r]];
      const std::int32_t token = t < target.size() ? target[t] : eos;
      sums[live[r]] += log_probs[r * vocabulary + token];
      if (token == eos) continue;
      still.push_back(live[r]);
      parents.push_back(static_cast<std::int32_t>(r));
      tokens.push_back(token);
    }
    live = still;
  }
  return sums;
}

TEST(Model, teacher_forcing_equals_step_by_step_and_no_row_sees_its_neighbors) {
  for (const ModelSpec& spec : specs()) {
    std::vector<double> one_thread;
    for (const int threads : {1, 2}) {
      test::Engine engine(threads);
      Model model(spec, source_size, target_size, engine.context, 3);
      change_convolutions(model);
      const std::vector<Ids> sources = random_sentences(engine.rng, 11, source_size, 9),
                             targets = random_sentences(engine.rng, 11, target_size, 8);
      const Batch batch = batch_of(sources, targets);
      const double training = model.evaluate(batch).cross_entropy;
      model.freeze();
      EXPECT_NEAR(model.evaluate(batch).cross_entropy, training, 1e-4 * training) << name_of(spec);
      ModelScorer scorer(model, bos, eos);
      const std::vector<double> together =
          step_by_step(scorer, sources, targets, spec.attention != AttentionType::none);
      double sum = 0;
      for (const double x : together) sum -= x;
      EXPECT_NEAR(sum, model.evaluate(batch).cross_entropy, 1e-5 * training) << name_of(spec);
      for (std::size_t i = 0; i < sources.size(); ++i)
        EXPECT_EQ(step_by_step(scorer, {sources[i]}, {targets[i]})[0], together[i])
            << name_of(spec) << " sentence " << i;
      if (one_thread.empty()) one_thread = together;
      EXPECT_EQ(together, one_thread) << name_of(spec);
    }
  }
}

// More sentences than pass at a time through the encoder, the decoder or the softmax: parts say
// what the sentence alone says.
TEST(Model, parts_of_a_batch_change_no_bit) {
  for (const char* type : {"rnnsearch", "deep", "block"}) {
    test::Engine engine(2);
    Model model(small(type, "gru"), source_size, target_size, engine.context, 3);
    model.freeze();
    ModelScorer scorer(model, bos, eos);
    const std::vector<Ids> sources = random_sentences(engine.rng, 150, source_size, 9),
                           targets = random_sentences(engine.rng, 150, target_size, 8);
    const std::vector<double> together = step_by_step(scorer, sources, targets);
    for (const std::size_t i : {0, 1, 27, 28, 31, 32, 127, 128, 149})
      EXPECT_EQ(step_by_step(scorer, {sources[i]}, {targets[i]})[0], together[i])
          << type << ", sentence " << i;
  }
}

TEST(Model, steady_steps_allocate_no_tensor_memory) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine;
    Model model(spec, source_size, target_size, engine.context, 3);
    const std::vector<Ids> sources = random_sentences(engine.rng, 16, source_size, 9),
                           targets = random_sentences(engine.rng, 16, target_size, 8);
    const Batch batch = batch_of(sources, targets);
    const auto system_allocations = [&] { return engine.arena.statistics().system_allocations; };
    model.accumulate_gradients(batch, {0.1f, 1, 0});
    std::int64_t before = system_allocations();
    for (std::uint64_t pass = 1; pass < 4; ++pass)
      model.accumulate_gradients(batch, {0.1f, 1, pass});
    EXPECT_EQ(system_allocations(), before) << "training " << name_of(spec);
    model.freeze();
    ModelScorer scorer(model, bos, eos);
    step_by_step(scorer, sources, targets);
    before = system_allocations();
    step_by_step(scorer, sources, targets);
    EXPECT_EQ(system_allocations(), before) << "decoding " << name_of(spec);
  }
}

TEST(Model, ten_small_updates_of_a_grouped_model_lower_its_loss) {
  for (const char* unit : {"lrn", "gru"}) {
    ModelSpec spec = small("deep", unit);
    spec.groups = 2;
    spec.rearrange = true;
    test::Engine engine;
    Model model(spec, source_size, target_size, engine.context, 3);
    const Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                                 random_sentences(engine.rng, 9, target_size, 6));
    double before = model.evaluate(batch).cross_entropy;
    for (std::uint64_t pass = 0; pass < 10; ++pass) {
      model.accumulate_gradients(batch, {0, 1, pass});
      for (Parameter& p : model.parameters().all())
        for (std::int64_t i = 0; i < p.shape.elements(); ++i) {
          p.value.f32()[i] -= 1e-3f * p.gradient.f32()[i];
          p.gradient.f32()[i] = 0;
        }
      const double now = model.evaluate(batch).cross_entropy;
      EXPECT_LT(now, before) << name_of(spec) << " update " << pass;
      before = now;
    }
  }
}

TEST(Model, dropout_is_the_same_for_the_same_pass_and_another_for_the_next) {
  ModelSpec spec = small("deep", "lrn");
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.3;
  test::Engine engine;
  Model model(spec, source_size, target_size, engine.context, 3);
  const Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                               random_sentences(engine.rng, 9, target_size, 6));
  const double first = model.accumulate_gradients(batch, {0, 1, 0}).cross_entropy;
  EXPECT_EQ(model.accumulate_gradients(batch, {0, 1, 0}).cross_entropy, first);
  EXPECT_NE(model.accumulate_gradients(batch, {0, 1, 1}).cross_entropy, first);
  EXPECT_NE(model.accumulate_gradients(batch, {0, 2, 0}).cross_entropy, first);
}

// Value projection 2 I and output projection I / 2 leave the model without projections.
TEST(Model, projections_that_undo_each_other_change_nothing) {
  for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer}) {
    ModelSpec spec = small("deep", "gru");
    spec.attention_query = query;
    spec.heads = 3;
    test::Engine engine;
    Model plain(spec, source_size, target_size, engine.context, 3);
    spec.attention_projections = true;
    Model projected(spec, source_size, target_size, engine.context, 4);
    for (Parameter& p : projected.parameters().all()) {
      if (const Parameter* from = plain.parameters().find(p.name)) {
        std::copy_n(from->value.f32(), p.value.elements(), p.value.f32());
        continue;
      }
      const bool values = p.name == "decoder.layer_0.attention.value_projection";
      EXPECT_TRUE(values || p.name == "decoder.layer_0.attention.output_projection") << p.name;
      ASSERT_EQ(p.shape, (Shape{12, 12}));
      for (std::int64_t i = 0; i < 12; ++i)
        for (std::int64_t j = 0; j < 12; ++j)
          p.value.f32()[12 * i + j] = i != j ? 0.0f : values ? 2.0f : 0.5f;
    }
    const Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                                 random_sentences(engine.rng, 9, target_size, 6));
    const double expected = plain.evaluate(batch).cross_entropy;
    EXPECT_NEAR(projected.evaluate(batch).cross_entropy, expected, 1e-6 * expected);
    std::fill_n(
        projected.parameters().find("decoder.layer_0.attention.value_projection")->value.f32(), 12,
        1.0f);
    EXPECT_GT(std::abs(projected.evaluate(batch).cross_entropy - expected), 1e-5 * expected);
  }
}

TEST(Model, names_what_does_not_fit) {
  test::Engine engine;
  const auto message = [&](ModelSpec spec) -> std::string {
    try {
      Model model(spec, source_size, target_size, engine.context, 3);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  ModelSpec spec = small("deep", "lrn");
  spec.heads = 5;
  EXPECT_NE(message(spec).find("heads: 5"), std::string::npos);
  spec = small("deep", "lrn");
  spec.tied_embeddings_all = true;
  EXPECT_NE(message(spec).find("joint vocabulary"), std::string::npos);
  spec = small("deep", "lrn");
  spec.groups = 4;
  EXPECT_NE(message(spec).find(
                "groups: 4 must divide both the width 12 of what a layer reads and the width 10"),
            std::string::npos);
  spec = small("deep", "lnr");
  EXPECT_NE(message(spec).find("known: lrn"), std::string::npos);
  const auto refuses = [&](const char* type, const std::function<void(ModelSpec&)>& change,
                           const char* words) {
    ModelSpec wrong = small(type, "lrn");
    if (wrong.type == ModelType::gnmt) wrong.dim_emb = wrong.dim_rnn;
    change(wrong);
    EXPECT_NE(message(wrong).find(words), std::string::npos) << type << ": " << message(wrong);
    EXPECT_EQ(message(wrong).find('\n'), std::string::npos);
  };
  refuses(
      "rnnsearch", [](ModelSpec& s) { s.enc_depth = 2; },
      "enc-depth: 2 layers, but type rnnsearch has exactly 1");
  refuses(
      "rnnsearch", [](ModelSpec& s) { s.attention = AttentionType::none; },
      "type rnnsearch reads the source through attention");
  refuses(
      "deep", [](ModelSpec& s) { s.attention = AttentionType::none; }, "allowed for type seq2seq");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.context_aware = true; },
      "context-aware: allowed for types deep and rnnsearch, not seq2seq");
  refuses(
      "gnmt", [](ModelSpec& s) { s.context_aware = true; }, "not gnmt");
  refuses(
      "gnmt", [](ModelSpec& s) { s.dim_emb = 12; }, "dim-emb 12 must equal dim-rnn 10");
  refuses(
      "gnmt", [](ModelSpec& s) { s.dec_depth = 1; }, "at least 2");
  refuses(
      "gnmt", [](ModelSpec& s) { s.attention = AttentionType::none; },
      "type gnmt reads the source through attention");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.attention = AttentionType::none, s.heads = 2; },
      "heads: 2 means nothing beside attention none");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.attention = AttentionType::none, s.dim_attention = 8; },
      "dim-attention: 8 means nothing");
  refuses(
      "seq2seq",
      [](ModelSpec& s) { s.attention = AttentionType::none, s.attention_projections = true; },
      "attention-projections: there are no heads");
  refuses(
      "deep", [](ModelSpec& s) { s.context_aware = true, s.upper_context = false; },
      "upper-context: context-aware");
  refuses(
      "deep", [](ModelSpec& s) { s.enc_depth = 1, s.dim_enc_upper = 8; },
      "dim-enc-upper: 8, but enc-depth 1");
  refuses(
      "seq2seq",
      [](ModelSpec& s) {
        s.attention = AttentionType::none, s.attention_query = AttentionQuery::recurrent;
      },
      "attention-query: 'recurrent' means nothing");
}

TEST(Model, alignments_need_attention) {
  ModelSpec spec = small("seq2seq", "lrn");
  spec.attention = AttentionType::none;
  test::Engine engine;
  Model model(spec, source_size, target_size, engine.context, 3);
  model.freeze();
  ModelScorer scorer(model, bos, eos);
  EXPECT_THROW(scorer.begin(std::vector<Ids>{{3, 4}}, true), Error);
}

// Without attention nothing reads the annotations after the encoder.
TEST(Model, keeps_no_annotations_without_attention) {
  ModelSpec spec = small("seq2seq", "gru");
  spec.attention = AttentionType::none;
  test::Engine engine;
  Model model(spec, source_size, target_size, engine.context, 3);
  model.freeze();
  ModelScorer scorer(model, bos, eos);
  for (const int sentences : {1, 40}) {  // in one part and in several
    const std::vector<Ids> sources(sentences, Ids(200, 5));
    const std::size_t before = engine.arena.statistics().in_use;
    const auto decoding = scorer.begin(sources, false);
    EXPECT_LT(engine.arena.statistics().in_use - before,
              static_cast<std::size_t>(sentences) * 201 * spec.dim_rnn)
        << sentences;
  }
}

// Weights that are copied in need no drawing and no room for gradients.
TEST(Model, unset_weights_are_filled_by_the_caller) {
  const ModelSpec spec = small("deep", "gru");
  test::Engine engine, other;
  Model model(spec, source_size, target_size, engine.context, 3),
      copy(spec, source_size, target_size, other.context, 0, Model::Weights::unset);
  std::size_t bytes = 0;
  for (const Parameter& p : model.parameters().all()) {
    Parameter* const to = copy.parameters().find(p.name);
    ASSERT_TRUE(to && to->value) << p.name;
    EXPECT_FALSE(to->gradient) << p.name;
    std::copy_n(p.value.f32(), p.value.elements(), to->value.f32());
    bytes += static_cast<std::size_t>(p.value.elements()) * sizeof(float);
  }
  EXPECT_LT(other.arena.statistics().peak, bytes + bytes / 10);
  const Batch batch = batch_of({{5, 4, 6, 7}}, {{3, 4}});
  EXPECT_EQ(copy.evaluate(batch).cross_entropy, model.evaluate(batch).cross_entropy);
  EXPECT_THROW(copy.accumulate_gradients(batch, {}), Error);
}

// The source comes in where it should: another first word changes the probability of a target, for
// every model.
TEST(Model, every_model_reads_the_source) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine;
    Model model(spec, source_size, target_size, engine.context, 3);
    const double one = model.evaluate(batch_of({{5, 4, 6, 7}}, {{3, 4}})).cross_entropy,
                 other = model.evaluate(batch_of({{8, 4, 6, 7}}, {{3, 4}})).cross_entropy;
    EXPECT_GT(std::abs(one - other), 1e-7) << name_of(spec);
  }
}

// Layers that carry vectors between two units, heads that do not divide a layer, and a decoder that
// would not see the source.
TEST(Model, units_with_a_matrix_state_refuse_what_they_cannot_do) {
  test::Engine engine(1);
  const auto refused = [&](const ModelSpec& spec, const std::string& reason) {
    try {
      check_model(spec);
      const Model model(spec, source_size, target_size, engine.context, 3);
      ADD_FAILURE() << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  ModelSpec spec = small("deep", "gla");
  spec.attention_query = AttentionQuery::recurrent;
  refused(spec, "unit gla: a unit with a matrix state does not run in the conditional decoder");
  spec = small("deep", "gla");
  spec.context_aware = true;
  refused(spec, "does not run in context-aware layers");
  spec = small("deep", "gla");
  spec.state_heads = 3;
  refused(spec, "state-heads: 3 does not divide the width 10 of unit gla");
  spec = small("seq2seq", "gla");
  spec.attention = AttentionType::none;
  refused(spec, "attention none: unit gla");
}

}  // namespace
}  // namespace nmt
