#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "nn/unit_registry.h"
#include "tasks/classification/classifier.h"
#include "tasks/classification/error_rate.h"
#include "tasks/classification/labeled_corpus.h"
#include "tasks/finite_scores.h"
#include "tests/support/engine.h"
#include "tests/support/reference.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::Row;

constexpr int symbols = 9, labels = 3;
constexpr std::size_t emb = 5, rnn = 4, space = 6;

const std::vector<Ids> texts = {{3, 4, 8, 4}, {5}, {6, 7, 3}};
const std::vector<std::int32_t> right = {2, 0, 1};

Batch batch_of(const std::vector<Ids>& ids, const std::vector<std::int32_t>& of) {
  std::vector<const Ids*> chosen;
  for (const Ids& text : ids) chosen.push_back(&text);
  return make_classification_batch(chosen, of);
}

ModelSpec small(const std::string& unit) {
  ModelSpec spec;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = emb;
  spec.dim_rnn = rnn;
  spec.dim_attention = space;
  spec.enc_depth = 1;
  spec.positions = 3;
  spec.state_heads = 1;
  spec.state_width = 3;
  spec.layer_normalization = false;
  spec.dropout_emb = spec.dropout_rnn = 0;
  return spec;
}

// The classifier in double; it shares only the step of a unit with the code.
template <class U>
class Reference {
 public:
  explicit Reference(ParameterSet& parameters) {
    for (const Parameter& p : parameters.all()) values_[p.name] = test::doubles(p.value);
  }
  Row& at(const std::string& name) { return values_.at(name); }

  double loss(const Ids& text, std::int32_t label) {
    std::vector<Row> x;
    for (const std::int32_t id : text) {
      const double* const row =
          at("classifier.embedding").data() + static_cast<std::size_t>(id) * emb;
      x.emplace_back(row, row + emb);
    }
    std::vector<Row> h = layer("classifier.layer_0.forward.", x, false);
    const std::vector<Row> back = layer("classifier.layer_0.backward.", x, true);
    Row pooled(2 * rnn);
    double total = 0;
    for (std::size_t t = 0; t < h.size(); ++t) {
      h[t].insert(h[t].end(), back[t].begin(), back[t].end());
      const Row key = test::product(h[t], at("classifier.pooling_key"), 2 * rnn, space);
      double score = 0;
      for (std::size_t i = 0; i < space; ++i)
        score +=
            at("classifier.pooling_v")[i] * std::tanh(key[i] + at("classifier.pooling_query")[i]);
      total += std::exp(score);
      for (std::size_t i = 0; i < 2 * rnn; ++i) pooled[i] += std::exp(score) * h[t][i];
    }
    for (double& value : pooled) value /= total;
    Row z = test::product(pooled, at("classifier.output"), 2 * rnn, labels);
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i)
      sum += std::exp(z[i] += at("classifier.output_bias")[i]);
    return std::log(sum) - z[static_cast<std::size_t>(label)];
  }

 private:
  std::vector<Row> layer(const std::string& name, const std::vector<Row>& x, bool reverse) {
    const auto find = [&](const char* part) {
      const auto it = values_.find(name + part);
      return it == values_.end() ? Row{} : it->second;
    };
    const test::CellValues cell{find("recurrent_projection"),
                                find("recurrent_projection_bias"),
                                {},
                                {},
                                find("vectors"),
                                find("positions"),
                                {}};
    const Row input = find("input_projection"), bias = find("input_projection_bias");
    std::vector<Row> states(U::states, Row(rnn)), out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t t = reverse ? x.size() - 1 - i : i;
      Row projected = test::product(x[t], input, emb, U::inputs * rnn);
      for (std::size_t j = 0; j < bias.size(); ++j) projected[j] += bias[j];
      test::cell_step<U>(cell, rnn, projected.data(), states, t);
      out[t] = states[0];
    }
    return out;
  }
  std::map<std::string, Row> values_;
};

template <class U>
void compare(const std::string& unit) {
  test::Engine engine(1);
  Classifier classifier(small(unit), symbols, labels, engine.context, 3);
  for (Parameter& p : classifier.parameters().all())
    for (std::int64_t i = 0; i < p.shape.elements(); ++i)
      p.value.f32()[i] += 0.3f * engine.rng.normal();
  Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  classifier.accumulate_gradients(batch_of(texts, right), {0, 1, 0}, sums);
  Reference<U> reference(classifier.parameters());
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) sum += reference.loss(texts[i], right[i]);
    return sum;
  };
  EXPECT_NEAR(sums.data<double>()[0], loss(), 1e-5) << unit;
  EXPECT_NEAR(classifier.evaluate(batch_of(texts, right)).cross_entropy, loss(), 1e-5) << unit;
  for (Parameter& p : classifier.parameters().all()) {
    Row& values = reference.at(p.name);
    for (int sample = 0; sample < 8; ++sample) {
      const std::size_t i = engine.rng.below(values.size());
      EXPECT_NEAR(p.gradient.f32()[i], test::slope(loss, values[i]), 2e-5)
          << unit << ' ' << p.name << ' ' << i;
    }
  }
}

TEST(Classification, EqualsAReferenceInDouble) {
  compare<units::Lrn<units::Activation::tanh>>("lrn");
  compare<units::Lstm<units::CellInput::xh>>("lstm");
  compare<units::Olrn>("olrn");
}

TEST(Classification, TextsDoNotSeeTheirNeighbors) {
  for (const std::string& unit : unit_names()) {
    test::Engine engine(1);
    ModelSpec spec = small(unit);
    spec.layer_normalization = true;
    spec.enc_depth = 2;
    Classifier classifier(spec, symbols, labels, engine.context, 3);
    const std::vector<std::int32_t> together = classifier.classify(batch_of(texts, {}));
    double sum = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(classifier.classify(batch_of({texts[i]}, {}))[0], together[i]) << unit;
      sum += classifier.evaluate(batch_of({texts[i]}, {right[i]})).cross_entropy;
    }
    EXPECT_NEAR(classifier.evaluate(batch_of(texts, right)).cross_entropy, sum, 1e-5 * sum);
  }
}

TEST(Classification, ScoresThatAreNotFiniteAreErrors) {
  test::Engine engine(1);
  Classifier classifier(small("gru"), symbols, labels, engine.context, 3);
  for (Parameter& parameter : classifier.parameters().all())
    std::fill_n(parameter.value.f32(), parameter.value.elements(),
                std::numeric_limits<float>::infinity());
  EXPECT_THROW(classifier.classify(batch_of(texts, {})), LabelScoreNotFinite);
}

TEST(LabeledCorpus, EncodesTextsAndPairs) {
  const Vocabulary vocabulary = word_vocabulary({"a", "b"}), names = word_vocabulary({"no", "yes"});
  const std::int32_t end = vocabulary.eos();
  EXPECT_EQ(encode_text(vocabulary, "a b c", "", 10), (Ids{3, 4, 0}));
  EXPECT_EQ(encode_text(vocabulary, "a b c", "", 2), (Ids{3, 4}));
  EXPECT_EQ(encode_text(vocabulary, "", "", 10), (Ids{0}));
  EXPECT_EQ(encode_text(vocabulary, "a b", "b", 10), (Ids{3, 4, end, 4}));
  EXPECT_EQ(encode_text(vocabulary, "a a a a a", "b b b b b", 6), (Ids{3, 3, 3, end, 4, 4}));
  EXPECT_EQ(encode_text(vocabulary, "a a a a a", "b", 6), (Ids{3, 3, 3, 3, end, 4}));
  std::size_t tokens = 0;
  encode_text(vocabulary, "a b c", "", 2, &tokens);
  EXPECT_EQ(tokens, 3u);
  encode_text(vocabulary, "a a a a a", "b", 6, &tokens);
  EXPECT_EQ(tokens, 7u);
  const std::vector<LabeledText> examples = {{"yes", "a", "", 1}, {"new", "b", "a", 2}};
  const LabeledCorpus corpus = encode(examples, vocabulary, class_names(names), 10);
  EXPECT_EQ(corpus.labels, (std::vector<std::int32_t>{1, kernels::no_target}));
  EXPECT_EQ(corpus.texts[1], (Ids{4, end, 3}));
}

TEST(ErrorRate, CountsWrongLabels) {
  const ErrorRate rate = error_rate({"a", "b", "a", "b"}, {"a", "a", "a", "b"});
  EXPECT_DOUBLE_EQ(rate.percent, 25);
  EXPECT_GT(rate.half_width, 0);
  EXPECT_EQ(rate.details, "(1 of 4)");
}

}  // namespace
}  // namespace nmt
