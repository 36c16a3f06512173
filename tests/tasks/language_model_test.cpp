#include "tasks/language_model/language_model.h"

#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int vocabulary = 23;

ModelSpec small(const std::string& unit) {
  ModelSpec spec;
  spec.task = Task::language_model;
  spec.dec_cell = unit;
  spec.dim_emb = 12;
  spec.dim_rnn = 8;
  spec.dec_depth = 2;
  spec.positions = 6;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  return spec;
}

// Steps [first, first + steps) of streams of random tokens.
Batch window(int streams, int first, int steps, int length = 32) {
  Rng rng(5);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(streams * (length + 1)));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(rng.below(vocabulary));
  Batch batch;
  batch.sentences = batch.slice.whole = streams;
  batch.target_steps = steps;
  batch.target_tokens = streams * steps;
  batch.first_step = first;
  batch.target_mask.assign(static_cast<std::size_t>(streams * steps), 1.0f);
  batch.lines.assign(static_cast<std::size_t>(streams), 0);
  for (int t = first; t < first + steps; ++t)
    for (int b = 0; b < streams; ++b) {
      const auto at = static_cast<std::size_t>(b * (length + 1) + t);
      batch.target_in.push_back(ids[at]);
      batch.target_out.push_back(ids[at + 1]);
    }
  return batch;
}

double accumulate(LanguageModel& model, const Batch& batch, std::uint64_t pass = 1) {
  Tensor sums = model.context().empty({2}, Dtype::f64);
  sums.data<double>()[0] = sums.data<double>()[1] = 0;
  model.accumulate_gradients(batch, {0, 7, pass}, sums);
  return sums.data<double>()[0];
}

void clear_gradients(LanguageModel& model) {
  for (Parameter& p : model.parameters().all())
    std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Every parameter, along its gradient, in a second window whose initial states are carried; with
// and without all kinds of dropout.
TEST(LanguageModel, GradientsAreCentralDifferences) {
  for (const char* unit : {"lstm", "gru", "lrn", "elstm1", "srn"})
    for (const bool drops : {false, true})
      for (const OutputLayer output : {OutputLayer::tanh, OutputLayer::linear}) {
        ModelSpec spec = small(unit);
        spec.language_model.output = output;
        spec.tied_embeddings = output == OutputLayer::tanh;
        spec.layer_normalization = output == OutputLayer::tanh;
        if (drops) {
          spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = spec.dropout_state = 0.2;
          spec.language_model.dropout_weights = 0.3;
          spec.dropout_variational = true;
        }
        test::Engine engine(1);
        LanguageModel model(spec, vocabulary, engine.context, 3, 4);
        const auto loss = [&] {
          const double first = accumulate(model, window(4, 0, 5), 1);
          model.begin_update();
          const double second = accumulate(model, window(4, 5, 5), 2);
          return std::pair(first, second);
        };
        for (Parameter& p : model.parameters().all()) {
          loss();
          clear_gradients(model);
          model.restart_update();
          accumulate(model, window(4, 5, 5), 2);
          const std::vector<double> gradient = test::doubles(p.gradient);
          double square = 0;
          for (const double g : gradient) square += g * g;
          if (square < 1e-12) continue;
          const std::vector<float> keep(p.value.f32(), p.value.f32() + p.shape.elements());
          const double length = std::sqrt(square), step = 5e-4;
          // The states at the start of the window are constants of truncated back-propagation.
          const auto at = [&](double move) {
            model.restart_update();
            for (std::size_t i = 0; i < keep.size(); ++i)
              p.value.f32()[i] = static_cast<float>(keep[i] + move * gradient[i] / length);
            return accumulate(model, window(4, 5, 5), 2);
          };
          const double measured = (at(step) - at(-step)) / (2 * step);
          std::copy(keep.begin(), keep.end(), p.value.f32());
          EXPECT_NEAR(measured, length, 5e-3 * length + 2e-3) << unit << " " << p.name;
        }
      }
}

// Windows that carry their states give the loss of one long sequence.
TEST(LanguageModel, CarriedStatesAreOneLongSequence) {
  for (const auto& [unit, taps] : {std::pair{"lstm", 0},
                                   {"gru", 4},
                                   {"lrn", 0},
                                   {"olrn", 0},
                                   {"elstm2", 0},
                                   {"ran", 2},
                                   {"slstm", 0}}) {
    test::Engine engine(1);
    ModelSpec spec = small(unit);
    spec.convolution = taps;
    LanguageModel model(spec, vocabulary, engine.context, 3, 4);
    for (Parameter& p : model.parameters().all())  // a convolution starts as the identity
      if (p.name.ends_with("convolution"))
        for (std::int64_t i = 0; i < p.shape.elements(); ++i)
          p.value.f32()[i] = 0.5f * engine.rng.normal();
    const double whole = accumulate(model, window(4, 0, 15));
    double parts = 0;
    for (const auto& [first, steps] : {std::pair{0, 7}, {7, 1}, {8, 7}})
      parts += accumulate(model, window(4, first, steps));
    EXPECT_NEAR(parts, whole, 1e-4 * whole) << unit;
    // An epoch begins with the first states again.
    EXPECT_NEAR(accumulate(model, window(4, 0, 15)), whole, 1e-9 * whole) << unit;
    LanguageModelState state;
    model.freeze();
    double scored = -sum(model.log_probabilities(window(4, 0, 6), state));
    scored -= sum(model.log_probabilities(window(4, 6, 9), state));
    EXPECT_NEAR(scored, whole, 1e-4 * whole) << unit;
    EXPECT_EQ(state.position, 15);
  }
}

// States that overflowed spoil the windows that follow until they begin again, as in a new model.
TEST(LanguageModel, ForgottenStatesAreThoseOfANewModel) {
  for (const auto& [unit, taps] : {std::pair{"lstm", 0}, {"slstm", 0}, {"lrn", 4}}) {
    test::Engine engine(1);
    ModelSpec spec = small(unit);
    spec.convolution = taps;
    LanguageModel model(spec, vocabulary, engine.context, 3, 4);
    Batch second = window(4, 7, 7);
    model.for_each_state([](const std::string&, Tensor& t) {
      std::fill_n(t.f32(), t.elements(), std::numeric_limits<float>::quiet_NaN());
    });
    EXPECT_FALSE(std::isfinite(accumulate(model, second))) << unit;
    EXPECT_FALSE(std::isfinite(accumulate(model, second))) << unit;
    model.forget_states();
    const double again = accumulate(model, second);
    second.first_step = 0;
    EXPECT_EQ(again, accumulate(model, second)) << unit;
  }
}

// After a lack of memory, the halves of a batch begin with the states before the update, and end
// with those of the whole batch.
TEST(LanguageModel, HalvesOfABatchAreTheBatch) {
  ModelSpec spec = small("lstm");
  spec.dropout_emb = spec.dropout_rnn = 0.3;
  test::Engine engine(1);
  LanguageModel model(spec, vocabulary, engine.context, 3, 6),
      halves(spec, vocabulary, engine.context, 3, 6);
  for (LanguageModel* each : {&model, &halves}) {
    accumulate(*each, window(6, 0, 4), 1);
    clear_gradients(*each);
    each->begin_update();
  }
  const double whole = accumulate(model, window(6, 4, 4), 2);
  accumulate(halves, slice(window(6, 4, 4), 0, 3), 2);  // the second half finds no memory
  halves.restart_update();
  clear_gradients(halves);
  const double parts = accumulate(halves, slice(window(6, 4, 4), 0, 3), 2) +
                       accumulate(halves, slice(window(6, 4, 4), 3, 3), 2);
  EXPECT_NEAR(parts, whole, 1e-5 * whole);
  for (Parameter& p : model.parameters().all()) {
    const std::vector<double> a = test::doubles(p.gradient),
                              b = test::doubles(halves.parameters().find(p.name)->gradient);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << p.name;
  }
  std::vector<Tensor> states[2];
  model.for_each_state([&](const std::string&, Tensor& t) { states[0].push_back(t); });
  halves.for_each_state([&](const std::string&, Tensor& t) { states[1].push_back(t); });
  ASSERT_EQ(states[0].size(), 4u);
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_EQ(test::doubles(states[0][k]), test::doubles(states[1][k]));
}

// DropConnect leaves the weights as they were, and its masks differ between passes.
TEST(LanguageModel, DropoutOfWeights) {
  ModelSpec spec = small("lstm");
  spec.language_model.dropout_weights = 0.5;
  test::Engine engine(1);
  LanguageModel model(spec, vocabulary, engine.context, 3, 4);
  Parameter& u = *model.parameters().find("decoder.layer_0.recurrent_projection");
  const std::vector<double> before = test::doubles(u.value);
  const float* const place = u.value.f32();
  const double first = accumulate(model, window(4, 0, 6), 1);
  EXPECT_EQ(test::doubles(u.value), before);
  EXPECT_EQ(u.value.f32(), place);
  clear_gradients(model);
  EXPECT_EQ(accumulate(model, window(4, 0, 6), 1), first);
  const std::vector<double> gradient = test::doubles(u.gradient);
  const auto zeros = std::count(gradient.begin(), gradient.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(gradient.size()), 0.5, 0.15);
  EXPECT_NE(accumulate(model, window(4, 0, 6), 2), first);
}

// What the listener hears of is complete: ranks sum it while the pass goes on.
TEST(LanguageModel, GradientsAreCompleteWhenTheListenerHears) {
  for (const double dropped : {0.0, 0.5}) {
    ModelSpec spec = small("lstm");
    spec.language_model.dropout_weights = dropped;
    test::Engine engine(1);
    LanguageModel model(spec, vocabulary, engine.context, 3, 4);
    const Tensor sums = engine.context.empty({2}, Dtype::f64);
    sums.data<double>()[0] = sums.data<double>()[1] = 0;
    std::map<std::string, std::vector<double>> complete;
    model.accumulate_gradients(window(4, 0, 6), {0, 7, 1}, sums, [&](Completed so_far) {
      for (const Parameter& p : model.parameters().all())
        if (completed_with(p) <= so_far && !complete.count(p.name))
          complete[p.name] = test::doubles(p.gradient);
    });
    EXPECT_EQ(complete.empty(), dropped > 0);
    for (const auto& [name, gradient] : complete)
      EXPECT_EQ(test::doubles(model.parameters().find(name)->gradient), gradient) << name;
  }
}

TEST(LanguageModel, RefusesContradictorySizes) {
  ModelSpec spec = small("gru");
  spec.language_model.output = OutputLayer::none;
  test::Engine engine(1);
  EXPECT_THROW(LanguageModel(spec, vocabulary, engine.context, 3, 4), Error);
}

}  // namespace
}  // namespace nmt
