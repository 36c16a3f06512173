// The whole tagger against a reference in double that shares none of its code but the step of a
// unit: the trained loss, and single gradients against the reference's central differences.

#include "tasks/tagging/tagger.h"
#include "tests/support/engine.h"
#include "tests/support/reference.h"
#include "text/vocabulary/word_vocabulary.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::Row;

constexpr std::size_t labels = 3, emb = 5, char_emb = 4, char_rnn = 3, rnn = 6;

template <class U>
class Reference {
 public:
  Reference(ParameterSet& parameters, bool crf) : crf_(crf) {
    for (const Parameter& p : parameters.all()) values_[p.name.substr(7)] = test::doubles(p.value);
  }
  Row& at(const std::string& name) { return values_.at(name.substr(7)); }

  /// The sum of the three losses of a sentence: words are ids and symbols.
  double loss(const WordForms& forms, const Ids& words, const Ids& tags) {
    std::vector<Row> x;
    for (const std::int32_t word : words) {
      Row row = table("embedding", forms.id(word), emb);
      std::vector<Row> characters;
      for (const std::int32_t c : forms.symbols(word))
        characters.push_back(table("character_embedding", c, char_emb));
      append(row, layer("characters.forward.", characters, char_rnn, false).back());
      append(row, layer("characters.backward.", characters, char_rnn, true).front());
      x.push_back(row);
    }
    std::vector<Row> h = layer("layer_0.forward.", x, rnn, false);
    const std::vector<Row> back = layer("layer_0.backward.", x, rnn, true);
    for (std::size_t t = 0; t < h.size(); ++t) append(h[t], back[t]);
    const std::vector<Row> f = layer("upper_forward.", h, rnn, false),
                           g = layer("upper_backward.", h, rnn, true);
    std::vector<Row> zf, zb, z;
    for (std::size_t t = 0; t < h.size(); ++t) {
      zf.push_back(affine(f[t], "forward_output"));
      zb.push_back(affine(g[t], "backward_output"));
      Row both = zf[t];
      append(both, zb[t]);
      z.push_back(test::product(both, values_.at("pool"), 2 * labels, labels));
    }
    double sum = crf_ ? crf_loss(z, tags) : 0;
    for (std::size_t t = 0; t < h.size(); ++t) {
      sum += softmax_loss(zf[t], tags[t]) + softmax_loss(zb[t], tags[t]);
      if (!crf_) sum += softmax_loss(z[t], tags[t]);
    }
    return sum;
  }

 private:
  static void append(Row& to, const Row& from) { to.insert(to.end(), from.begin(), from.end()); }
  Row table(const std::string& name, std::int32_t id, std::size_t width) {
    const double* const row = values_.at(name).data() + static_cast<std::size_t>(id) * width;
    return {row, row + width};
  }
  Row affine(const Row& x, const std::string& name) {
    Row y = test::product(x, values_.at(name), x.size(), labels);
    for (std::size_t i = 0; i < labels; ++i) y[i] += values_.at(name + "_bias")[i];
    return y;
  }
  std::vector<Row> layer(const std::string& name, const std::vector<Row>& x, std::size_t h,
                         bool reverse) {
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
    std::vector<Row> states(U::states, Row(h)), out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t t = reverse ? x.size() - 1 - i : i;
      Row projected = test::product(x[t], input, x[t].size(), U::inputs * h);
      for (std::size_t j = 0; j < bias.size(); ++j) projected[j] += bias[j];
      test::cell_step<U>(cell, h, projected.data(), states, t);
      out[t] = states[0];
    }
    return out;
  }
  static double softmax_loss(const Row& z, std::int32_t tag) {
    double sum = 0;
    for (const double x : z) sum += std::exp(x);
    return std::log(sum) - z[static_cast<std::size_t>(tag)];
  }
  // By enumeration.
  double crf_loss(const std::vector<Row>& z, const Ids& tags) {
    const Row& u = values_.at("transitions");
    const auto score = [&](const Ids& y) {
      double sum = u[labels * labels + y[0]] + u[(labels + 1) * labels + y.back()];
      for (std::size_t t = 0; t < y.size(); ++t)
        sum += z[t][y[t]] + (t > 0 ? u[y[t - 1] * labels + y[t]] : 0.0);
      return sum;
    };
    double total = 0;
    Ids y(tags.size(), 0);
    for (bool more = true; more;) {
      total += std::exp(score(y));
      more = false;
      for (std::size_t t = 0; t < y.size() && !more; ++t) {
        more = ++y[t] < static_cast<std::int32_t>(labels);
        if (!more) y[t] = 0;
      }
    }
    return std::log(total) - score(tags);
  }

  bool crf_;
  std::map<std::string, Row> values_;
};

template <class U>
void compare(const std::string& unit, bool crf) {
  test::Engine engine(1);
  const Vocabulary vocabulary = word_vocabulary({"a", "bc"});
  WordForms forms(vocabulary);
  const std::vector<Ids> sentences = {
      {forms.add("a"), forms.add("xyz"), forms.add("bc"), forms.add("a")},
      {forms.add("q")},
      {forms.add("bc"), forms.add("\xC3\xA4")}};
  const std::vector<Ids> tags = {{0, 2, 1, 1}, {2}, {0, 1}};
  ModelSpec spec;
  spec.enc_cell = unit;
  spec.dim_emb = emb;
  spec.dim_rnn = rnn;
  spec.enc_depth = 1;
  spec.positions = 3;
  spec.layer_normalization = false;
  spec.dropout_emb = spec.dropout_rnn = 0;
  spec.tagging.network = TaggingNetwork::dependent;
  spec.tagging.crf = crf;
  spec.tagging.dim_char_emb = char_emb;
  spec.tagging.dim_char_rnn = char_rnn;
  Tagger tagger(spec, vocabulary.size(), labels, forms, engine.context, 3);
  for (Parameter& p : tagger.parameters().all())
    for (std::int64_t i = 0; i < p.shape.elements(); ++i)
      p.value.f32()[i] += 0.2f * engine.rng.normal();
  std::vector<const Ids*> s, t;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    s.push_back(&sentences[i]);
    t.push_back(&tags[i]);
  }
  Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  tagger.accumulate_gradients(make_tagging_batch(s, t), {0, 1, 0}, sums);
  Reference<U> reference(tagger.parameters(), crf);
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < sentences.size(); ++i)
      sum += reference.loss(forms, sentences[i], tags[i]);
    return sum;
  };
  EXPECT_NEAR(sums.data<double>()[1], loss(), 2e-5) << unit;
  for (Parameter& p : tagger.parameters().all()) {
    Row& values = reference.at(p.name);
    for (int sample = 0; sample < 6; ++sample) {
      const std::size_t i = engine.rng.below(values.size());
      EXPECT_NEAR(p.gradient.f32()[i], test::slope(loss, values[i]), 2e-5)
          << unit << ' ' << p.name << ' ' << i;
    }
  }
}

TEST(Tagging, EqualsAReferenceInDouble) {
  compare<units::Lrn<units::Activation::tanh>>("lrn", false);
  compare<units::Gru<units::Reset::before>>("gru", true);
  compare<units::Lstm<units::CellInput::xh>>("lstm", false);
  compare<units::Elstm2<units::CellInput::xh>>("elstm2", true);
}

}  // namespace
}  // namespace nmt
