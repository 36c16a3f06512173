#include "model/model.h"

#include "core/error.h"
#include "data/alignment/batch_links.h"
#include "model/architecture.h"
#include "model/decoding/model_scorer.h"
#include "tests/model/small_models.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace test;

// The gradient along a random direction against the loss's central difference.
TEST(Model, GradientAlongADirection) {
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
      const auto difference = [&](float step) { return (at(step) - at(-step)) / (2 * step); };
      const float step = 2e-4f;
      const double tolerance = 0.02 * std::abs(expected) + 0.02;
      double measured = difference(step);
      // Normalized heads with small outputs make the loss curved: without the error of order step^2
      // (Richardson).
      if (std::abs(measured - expected) > tolerance)
        measured = (4 * difference(step / 2) - measured) / 3;
      at(0);
      EXPECT_NEAR(measured, expected, tolerance) << text_of(spec) << ' ' << chosen.name;
    }
  }
}

// Random links of every other target symbol, sorted as piece_links() sorts them.
void add_links(Rng& rng, Batch& batch) {
  std::vector<Ids> links(static_cast<std::size_t>(batch.sentences));
  for (int b = 0; b < batch.sentences; ++b) {
    int length = 0;
    for (int s = 0; s < batch.source_steps; ++s)
      length += batch.source_mask[static_cast<std::size_t>(s * batch.sentences + b)] != 0.0f;
    for (int t = 0; t < batch.target_steps; t += 2)
      for (int s = 0; s + 1 < length; ++s)
        if (batch.target_mask[static_cast<std::size_t>(t * batch.sentences + b)] != 0.0f &&
            rng.below(2) == 0)
          links[static_cast<std::size_t>(b)].insert(links[static_cast<std::size_t>(b)].end(),
                                                    {s, t});
  }
  batch.extra = std::make_shared<BatchLinks>(std::move(links));
}

// Guided alignment in every architecture: the gradient of the whole cost along a random direction,
// with dropout; and the same cost of a batch in two parts.
TEST(Model, GradientOfGuidedAlignment) {
  constexpr float weight = 3;
  for (const Architecture& architecture : architectures())
    for (const AttentionType attention : {AttentionType::additive, AttentionType::dot}) {
      ModelSpec spec = small(std::string(architecture.name()), "gru");
      if (architecture.readout == ReadoutKind::none) spec.dim_emb = spec.dim_rnn;
      spec.attention = attention;
      spec.heads = spec.alignment_head = 2;
      spec.dim_attention = 8;
      spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.1;
      test::Engine engine(2);
      Model model(spec, source_size, target_size, engine.context, 3);
      Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                             random_sentences(engine.rng, 9, target_size, 6));
      add_links(engine.rng, batch);
      const TrainPass pass{0.1f, 1, 0, weight};
      const BatchLoss loss = model.accumulate_gradients(batch, pass);
      EXPECT_GT(loss.alignment, 1);
      double expected = 0;
      std::vector<std::vector<float>> keep, directions;
      for (Parameter& p : model.parameters().all()) {
        const std::int64_t n = p.shape.elements();
        keep.emplace_back(p.value.f32(), p.value.f32() + n);
        std::vector<float>& direction = directions.emplace_back();
        for (std::int64_t i = 0; i < n; ++i) {
          direction.push_back(0.02f * engine.rng.normal() + 0.01f * p.gradient.f32()[i]);
          expected += p.gradient.f32()[i] * direction.back();
        }
      }
      const auto at = [&](float step) {
        std::size_t which = 0;
        for (Parameter& p : model.parameters().all()) {
          for (std::int64_t i = 0; i < p.shape.elements(); ++i)
            p.value.f32()[i] = keep[which][i] + step * directions[which][i];
          ++which;
        }
        const BatchLoss moved = model.accumulate_gradients(batch, pass);
        return moved.smoothed + weight * moved.alignment;
      };
      const float step = 1e-3f;
      const double measured = (at(step) - at(-step)) / (2 * step);
      at(0);
      EXPECT_NEAR(measured, expected, 0.01 * std::abs(expected)) << text_of(spec);
      const BatchLoss first = model.accumulate_gradients(slice(batch, 0, 4), pass),
                      second = model.accumulate_gradients(slice(batch, 4, 5), pass);
      EXPECT_NEAR(first.alignment + second.alignment, loss.alignment, 1e-5 * loss.alignment)
          << text_of(spec);
      // Without a weight, and in evaluation, there is none.
      EXPECT_EQ(model.accumulate_gradients(batch, {0.1f, 1, 0}).alignment, 0);
      EXPECT_EQ(model.evaluate(batch).alignment, 0);
    }
}

// Alignments read the head that the model names, or the mean of all.
TEST(Model, AlignmentsReadTheirHead) {
  for (const char* type : {"rnnsearch", "block"}) {
    ModelSpec spec = small(type, "gru");
    if (architecture_of(spec).readout == ReadoutKind::none) spec.dim_emb = spec.dim_rnn;
    spec.attention = AttentionType::dot;
    spec.heads = 2;
    spec.dim_attention = 8;
    const std::vector<Ids> sources{{4, 5, 6, 7}, {8, 9, 10, 11}};
    for (const int head : {0, 1, 2}) {
      spec.alignment_head = head;
      test::Engine engine(1);
      Model model(spec, source_size, target_size, engine.context, 3);
      const Probe probe = model.probe(batch_of(sources, sources));
      const Tensor& all = probe.attention;  // [T,B,heads,S]
      model.freeze();
      ModelScorer scorer(model, bos, eos);
      const std::unique_ptr<Decoding> decoding = scorer.begin(sources, true);
      const std::vector<std::int32_t> parents{0, 1}, tokens{bos, bos};
      const DecodingStep step = decoding->advance(parents, tokens);
      ASSERT_EQ(step.source_steps, all.shape()[3]);
      for (int b = 0; b < 2; ++b)
        for (int s = 0; s < step.source_steps; ++s) {
          const float first = all.f32()[(2 * b) * step.source_steps + s],
                      second = all.f32()[(2 * b + 1) * step.source_steps + s];
          EXPECT_NEAR(step.attention[b * step.source_steps + s],
                      head == 0   ? (first + second) / 2
                      : head == 1 ? first
                                  : second,
                      1e-6)
              << type << ' ' << head;
          EXPECT_GT(std::abs(first - second), 1e-4);
        }
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

TEST(Model, TeacherForcingEqualsStepByStepAndNoRowSeesItsNeighbors) {
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
      EXPECT_NEAR(model.evaluate(batch).cross_entropy, training, 1e-4 * training) << text_of(spec);
      ModelScorer scorer(model, bos, eos);
      const std::vector<double> together =
          step_by_step(scorer, sources, targets, spec.attention != AttentionType::none);
      double sum = 0;
      for (const double x : together) sum -= x;
      EXPECT_NEAR(sum, model.evaluate(batch).cross_entropy, 1e-5 * training) << text_of(spec);
      for (std::size_t i = 0; i < sources.size(); ++i)
        EXPECT_EQ(step_by_step(scorer, {sources[i]}, {targets[i]})[0], together[i])
            << text_of(spec) << " sentence " << i;
      if (one_thread.empty()) one_thread = together;
      EXPECT_EQ(together, one_thread) << text_of(spec);
    }
  }
}

// More sentences than pass at a time through the encoder, the decoder or the softmax: parts say
// what the sentence alone says.
TEST(Model, PartsOfABatchChangeNoBit) {
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

TEST(Model, SteadyStepsAllocateNoTensorMemory) {
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
    EXPECT_EQ(system_allocations(), before) << "training " << text_of(spec);
    model.freeze();
    ModelScorer scorer(model, bos, eos);
    step_by_step(scorer, sources, targets);
    before = system_allocations();
    step_by_step(scorer, sources, targets);
    EXPECT_EQ(system_allocations(), before) << "decoding " << text_of(spec);
  }
}

TEST(Model, TenSmallUpdatesOfAGroupedModelLowerItsLoss) {
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
      EXPECT_LT(now, before) << text_of(spec) << " update " << pass;
      before = now;
    }
  }
}

TEST(Model, DropoutIsTheSameForTheSamePassAndAnotherForTheNext) {
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
TEST(Model, ProjectionsThatUndoEachOtherChangeNothing) {
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

TEST(Model, AlignmentsNeedAttention) {
  ModelSpec spec = small("seq2seq", "lrn");
  spec.attention = AttentionType::none;
  test::Engine engine;
  Model model(spec, source_size, target_size, engine.context, 3);
  model.freeze();
  ModelScorer scorer(model, bos, eos);
  EXPECT_THROW(scorer.begin(std::vector<Ids>{{3, 4}}, true), Error);
}

// Without attention nothing reads the annotations after the encoder.
TEST(Model, KeepsNoAnnotationsWithoutAttention) {
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
TEST(Model, UnsetWeightsAreFilledByTheCaller) {
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
TEST(Model, EveryModelReadsTheSource) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine;
    Model model(spec, source_size, target_size, engine.context, 3);
    const double one = model.evaluate(batch_of({{5, 4, 6, 7}}, {{3, 4}})).cross_entropy,
                 other = model.evaluate(batch_of({{8, 4, 6, 7}}, {{3, 4}})).cross_entropy;
    EXPECT_GT(std::abs(one - other), 1e-7) << text_of(spec);
  }
}

}  // namespace
}  // namespace nmt
