// Passes that find the gradients of an earlier update in place (Parameter::gradient_is_old).

#include "model/model.h"
#include "model/training_tape.h"
#include "tests/model/small_models.h"
#include "tests/support/engine.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace test;

// As after an update, with not-a-numbers for the old gradients: whatever reads one shows.
int make_old(ParameterSet& parameters) {
  int old = 0;
  for (Parameter& p : parameters.all()) {
    p.gradient_is_old = p.gradient_starts_with_product;
    old += p.gradient_is_old;
    std::fill_n(p.gradient.f32(), p.shape.elements(),
                p.gradient_is_old ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
  }
  return old;
}

std::vector<float> values_of(const Parameter& p) {
  return {p.gradient.f32(), p.gradient.f32() + p.shape.elements()};
}

TEST(OldGradients, AreOverwrittenInEveryModel) {
  for (ModelSpec spec : specs()) {
    spec.dropout_emb = spec.dropout_rnn = 0.1;
    Engine engine(1);
    const Batch batch = batch_of(random_sentences(engine.rng, 9, source_size, 7),
                                 random_sentences(engine.rng, 9, target_size, 6)),
                next = batch_of(random_sentences(engine.rng, 5, source_size, 4),
                                random_sentences(engine.rng, 5, target_size, 9));
    Model wanted(spec, source_size, target_size, engine.context, 3),
        model(spec, source_size, target_size, engine.context, 3);
    wanted.accumulate_gradients(batch, {0.1f, 1, 0});
    model.accumulate_gradients(next, {0.1f, 1, 5});  // shows which gradients start with products
    EXPECT_GT(make_old(model.parameters()), 2) << text_of(spec);
    model.accumulate_gradients(batch, {0.1f, 1, 0});
    EXPECT_FALSE(TrainingTape::starts_update(model.parameters()));
    const auto equal = [&] {
      auto expected = wanted.parameters().all().cbegin();
      for (const Parameter& p : model.parameters().all())
        EXPECT_EQ(values_of(p), values_of(*expected++)) << text_of(spec) << ' ' << p.name;
    };
    equal();
    for (Model* each : {&wanted, &model}) each->accumulate_gradients(next, {0.1f, 1, 1});
    equal();  // the second pass of an update adds
  }
}

TEST(OldGradients, ThatAPassDoesNotWriteAreZeroWhenTheyAreComplete) {
  Engine engine(1);
  const ModelSpec spec = small("rnnsearch", "gru");
  Model model(spec, source_size, target_size, engine.context, 3);
  std::vector<const Parameter*> unused;
  for (const auto role :
       {Parameter::Role::decoder, Parameter::Role::encoder, Parameter::Role::embedding}) {
    Parameter& p = model.parameters().add(engine.context, "unused" + std::to_string(int(role)),
                                          {3, 4}, ParameterSet::Init::zero, engine.rng);
    p.role = role;
    p.gradient_starts_with_product = true;
    unused.push_back(&p);
  }
  const Batch batch = batch_of(random_sentences(engine.rng, 4, source_size, 5),
                               random_sentences(engine.rng, 4, target_size, 5));
  model.accumulate_gradients(batch, {0.1f, 1, 0});
  make_old(model.parameters());
  const Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  Completed heard = Completed::nothing;
  const auto zero = [](const Parameter& p) { return values_of(p) == std::vector<float>(12, 0.0f); };
  model.accumulate_gradients(batch, {0.1f, 1, 0}, sums, [&](Completed so_far) {
    heard = so_far;
    for (const Parameter& p : model.parameters().all()) {
      if (completed_with(p) > so_far) continue;
      for (const float value : values_of(p)) EXPECT_FALSE(std::isnan(value)) << p.name;
    }
  });
  EXPECT_EQ(heard, Completed::encoder);
  for (const Parameter* p : unused) EXPECT_TRUE(zero(*p)) << p->name;
}

}  // namespace
}  // namespace nmt
