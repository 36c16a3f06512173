#include "autograd/ops/losses.h"
#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "nn/unit_registry.h"
#include "tasks/finite_scores.h"
#include "tasks/tagging/tagged_corpus.h"
#include "tasks/tagging/tagger.h"
#include "tasks/tagging/viterbi.h"
#include "tests/support/engine.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int labels = 4;

const std::vector<std::string> words = {"a", "bc",  "Straße", "Donaudampfschifffahrtsgesellschaft",
                                        ".", "rare"};

struct Example {
  Vocabulary vocabulary = word_vocabulary({"a", "bc", "."});
  WordForms forms{vocabulary};
  Batch batch;
  std::vector<Ids> sentences, tags;

  explicit Example(Rng& rng, std::size_t count = 5) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = 1 + rng.below(6);
      Ids ids, of_words;
      for (std::size_t t = 0; t < length; ++t) {
        ids.push_back(forms.add(words[rng.below(words.size())]));
        of_words.push_back(static_cast<std::int32_t>(rng.below(labels)));
      }
      sentences.push_back(ids);
      tags.push_back(of_words);
    }
    batch = batch_of(sentences, tags);
  }
  static Batch batch_of(const std::vector<Ids>& sentences, const std::vector<Ids>& tags) {
    std::vector<const Ids*> s, t;
    for (const Ids& ids : sentences) s.push_back(&ids);
    for (const Ids& ids : tags) t.push_back(&ids);
    return make_tagging_batch(s, t);
  }
};

ModelSpec small(const std::string& unit, TaggingNetwork network, bool crf = false) {
  ModelSpec spec;
  spec.task = Task::tagging;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = 7;
  spec.dim_rnn = 6;
  spec.enc_depth = network == TaggingNetwork::basic ? 2 : 1;
  spec.positions = 4;
  spec.state_heads = 2;
  spec.state_width = 3;
  spec.dropout_emb = spec.dropout_rnn = 0;
  spec.tagging.network = network;
  spec.tagging.crf = crf;
  spec.tagging.dim_char_emb = 5;
  spec.tagging.dim_char_rnn = 4;
  return spec;
}

std::vector<ModelSpec> specs() {
  std::vector<ModelSpec> all;
  for (const std::string& unit : unit_names())
    all.push_back(small(unit, TaggingNetwork::dependent));
  for (const TaggingNetwork network :
       {TaggingNetwork::basic, TaggingNetwork::bidirectional, TaggingNetwork::dependent})
    all.push_back(small("gru", network, true));
  all.push_back(small("lrn", TaggingNetwork::bidirectional));
  all.back().tagging.dim_char_rnn = 0;
  all.push_back(small("lstm", TaggingNetwork::bidirectional));
  all.back().layer_normalization = false;
  all.back().enc_depth = 2;
  return all;
}

std::string name_of(const ModelSpec& spec) {
  return spec.enc_cell + " " + std::string(nmt::name_of(spec.tagging.network)) +
         (spec.tagging.crf ? " crf" : "");
}

// The gradient of the trained loss along a random direction against its central difference.
// Tagging.EqualsAReferenceInDouble compares single gradients.
TEST(Tagging, GradientAlongADirection) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine(1);
    const Example setup(engine.rng);
    Tagger tagger(spec, setup.vocabulary.size(), labels, setup.forms, engine.context, 3);
    Tensor sums = engine.context.empty({2}, Dtype::f64);
    std::fill_n(sums.data<double>(), 2, 0.0);
    tagger.accumulate_gradients(setup.batch, {0, 1, 0}, sums);
    const BatchLoss loss = tagger.evaluate(setup.batch);
    EXPECT_EQ(loss.tokens, setup.batch.target_tokens);
    EXPECT_NEAR(loss.cross_entropy, sums.data<double>()[0], 1e-4 * loss.cross_entropy);
    EXPECT_NEAR(loss.smoothed, sums.data<double>()[1], 1e-4 * loss.smoothed);
    for (Parameter& chosen : tagger.parameters().all()) {
      const std::int64_t n = chosen.shape.elements();
      const std::vector<float> keep(chosen.value.f32(), chosen.value.f32() + n);
      std::vector<float> direction(static_cast<std::size_t>(n));
      double expected = 0, norm = 0, gradient_norm = 0;
      for (float& d : direction) {
        d = engine.rng.normal();
        norm += d * d;
      }
      for (std::int64_t i = 0; i < n; ++i)
        gradient_norm += chosen.gradient.f32()[i] * chosen.gradient.f32()[i];
      for (std::int64_t i = 0; i < n; ++i) {
        direction[i] =
            static_cast<float>(direction[i] / std::sqrt(norm) +
                               chosen.gradient.f32()[i] / std::sqrt(gradient_norm + 1e-12));
        expected += chosen.gradient.f32()[i] * direction[i];
      }
      const auto at = [&](float step) {
        for (std::int64_t i = 0; i < n; ++i) chosen.value.f32()[i] = keep[i] + step * direction[i];
        return tagger.evaluate(setup.batch).smoothed;
      };
      const float step = 2e-4f;
      const double measured = (at(step) - at(-step)) / (2 * step);
      at(0);
      EXPECT_NEAR(measured, expected, 0.02 * std::abs(expected) + 0.02)
          << name_of(spec) << ' ' << chosen.name;
    }
  }
}

TEST(Tagging, SentencesDoNotSeeTheirNeighbors) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine(2);
    const Example setup(engine.rng, 9);
    Tagger tagger(spec, setup.vocabulary.size(), labels, setup.forms, engine.context, 3);
    const std::vector<Ids> tagged = tagger.tag(setup.batch);
    double sum = 0;
    for (std::size_t i = 0; i < setup.sentences.size(); ++i) {
      const Batch one = Example::batch_of({setup.sentences[i]}, {setup.tags[i]});
      EXPECT_EQ(tagger.tag(one)[0], tagged[i]) << name_of(spec);
      sum += tagger.evaluate(one).cross_entropy;
    }
    EXPECT_NEAR(tagger.evaluate(setup.batch).cross_entropy, sum, 1e-5 * sum) << name_of(spec);
  }
}

TEST(Tagging, ScoresThatAreNotFiniteAreErrors) {
  for (const ModelSpec& spec : specs()) {
    test::Engine engine(1);
    const Example setup(engine.rng);
    Tagger tagger(spec, setup.vocabulary.size(), labels, setup.forms, engine.context, 3);
    for (Parameter& parameter : tagger.parameters().all())
      std::fill_n(parameter.value.f32(), parameter.value.elements(),
                  std::numeric_limits<float>::quiet_NaN());
    EXPECT_THROW(tagger.tag(setup.batch), LabelScoreNotFinite) << name_of(spec);
  }
}

// Only networks with a backward direction see later words; only characters tell unknown words
// apart.
TEST(Tagging, NetworksReadWhatTheyShould) {
  test::Engine engine(1);
  Example setup(engine.rng);
  const std::int32_t a = setup.forms.add("a"), bc = setup.forms.add("bc"),
                     x = setup.forms.add("unknown"), y = setup.forms.add("other");
  // The change of the loss of a first tag when the second word is another one, and so on.
  const auto change = [&](const ModelSpec& spec, const Ids& one, const Ids& other) {
    Tagger tagger(spec, setup.vocabulary.size(), labels, setup.forms, engine.context, 3);
    const auto loss = [&](const Ids& sentence) {
      Batch batch = Example::batch_of({sentence}, {Ids(sentence.size(), 1)});
      for (std::size_t t = 1; t < sentence.size(); ++t) batch.target_out[t] = kernels::no_target;
      return tagger.evaluate(batch).cross_entropy;
    };
    return std::abs(loss(one) - loss(other));
  };
  EXPECT_EQ(change(small("lstm", TaggingNetwork::basic), {a, bc}, {a, a}), 0);
  EXPECT_GT(change(small("lstm", TaggingNetwork::bidirectional), {a, bc}, {a, a}), 1e-4);
  EXPECT_GT(change(small("lstm", TaggingNetwork::dependent), {a, bc}, {a, a}), 1e-4);
  ModelSpec spec = small("lstm", TaggingNetwork::basic);
  EXPECT_GT(change(spec, {x}, {y}), 1e-4);
  spec.tagging.dim_char_rnn = 0;
  EXPECT_EQ(change(spec, {x}, {y}), 0);
  EXPECT_GT(change(spec, {x}, {a}), 1e-4);
}

TEST(Viterbi, FindsTheBestOfAllLabelings) {
  Rng rng(5);
  for (int trial = 0; trial < 50; ++trial) {
    const std::int64_t steps = 1 + static_cast<std::int64_t>(rng.below(5)),
                       n = 2 + static_cast<std::int64_t>(rng.below(3)), stride = n + 3;
    std::vector<float> scores(static_cast<std::size_t>(steps * stride)),
        transitions(static_cast<std::size_t>((n + 2) * n));
    for (float& x : scores) x = rng.normal();
    for (float& x : transitions) x = 2 * rng.normal();
    double best = -std::numeric_limits<double>::infinity();
    Ids expected, y(static_cast<std::size_t>(steps), 0);
    for (bool more = true; more;) {
      double score = transitions[n * n + y[0]] + transitions[(n + 1) * n + y.back()];
      for (std::int64_t t = 0; t < steps; ++t) {
        score += scores[t * stride + y[t]];
        if (t > 0) score += transitions[y[t - 1] * n + y[t]];
      }
      if (score > best) {
        best = score;
        expected = y;
      }
      more = false;
      for (std::int64_t t = 0; t < steps && !more; ++t) {
        more = ++y[t] < n;
        if (!more) y[t] = 0;
      }
    }
    EXPECT_EQ(best_labels({scores.data(), steps, stride, n}, transitions.data()), expected);
  }
}

// Scores whose exponentials overflow and underflow.
TEST(Crf, IsStableForLargeScores) {
  test::Engine engine(1);
  Tape tape(engine.context, true);
  const Var x = tape.result(engine.random({6, 2, 3}, 2000.0f));
  Parameter transitions = engine.parameter("transitions", {5, 3}, 2000.0f);
  Tensor sums = engine.context.empty({2}, Dtype::f64);
  std::fill_n(sums.data<double>(), 2, 0.0);
  ops::crf_loss(tape, x, transitions, engine.ints(std::vector<std::int32_t>(12, 1), {6, 2}),
                engine.ints({6, 4}, {2}), sums);
  EXPECT_TRUE(std::isfinite(sums.data<double>()[0]));
  EXPECT_GE(sums.data<double>()[0], 0);
  tape.backward();
  for (std::int64_t i = 0; i < x->gradient.elements(); ++i)
    EXPECT_LE(std::abs(x->gradient.f32()[i]), 1.0f);
}

TEST(Crf, RefusesTargetsThatAreNoLabels) {
  test::Engine engine(1);
  for (const std::int32_t other : {-1, 3}) {
    Tape tape(engine.context, true);
    const Var x = tape.result(engine.random({2, 2, 3}));
    Parameter transitions = engine.parameter("transitions", {5, 3}, 1.0f);
    Tensor sums = engine.context.empty({2}, Dtype::f64);
    std::fill_n(sums.data<double>(), 2, 0.0);
    const auto run = [&](std::int32_t second) {
      ops::crf_loss(tape, x, transitions, engine.ints({0, 2, 1, second}, {2, 2}),
                    engine.ints({2, 1}, {2}), sums);
    };
    run(other);  // padding
    EXPECT_THROW(ops::crf_loss(tape, x, transitions, engine.ints({0, 2, other, 0}, {2, 2}),
                               engine.ints({2, 1}, {2}), sums),
                 Error);
  }
}

TEST(WordForms, TellWordsApartByVocabularyAndBytes) {
  const Vocabulary vocabulary = word_vocabulary({"a", "b"});
  WordForms forms(vocabulary);
  const std::int32_t a = forms.add("a"), unknown = forms.add("ä b"),
                     longer = forms.add("0123456789abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(forms.add("a"), a);
  EXPECT_EQ(forms.id(a), 3);
  EXPECT_EQ(forms.id(unknown), vocabulary.unk());
  EXPECT_EQ(Ids(forms.symbols(a).begin(), forms.symbols(a).end()), (Ids{256, 'a', 257}));
  EXPECT_EQ(Ids(forms.symbols(unknown).begin(), forms.symbols(unknown).end()),
            (Ids{256, 0xC3, 0xA4, ' ', 'b', 257}));
  ASSERT_EQ(forms.symbols(longer).size(), WordForms::max_bytes + 2);
  EXPECT_EQ(forms.symbols(longer)[8], '7');
  EXPECT_EQ(forms.symbols(longer)[9], 's');
}

TEST(TaggedCorpus, UnknownTagsCountAsWrong) {
  const Vocabulary vocabulary = word_vocabulary({"a", "b"}), tags = word_vocabulary({"X", "``"});
  WordForms forms(vocabulary);
  EXPECT_EQ(label_names(tags), (std::vector<std::string>{"X", "``"}));
  const std::vector<TaggedSentence> sentences = {{{"a", "c"}, {"``", "NEW"}, 1}, {{"b"}, {"X"}, 2}};
  const TaggedCorpus corpus = encode(sentences, tags, forms);
  EXPECT_EQ(corpus.labels, (std::vector<Ids>{{1, kernels::no_target}, {0}}));
  EXPECT_EQ(label_lines(sentences), (std::vector<std::string>{"`` NEW", "X"}));
  EXPECT_EQ(label_lines(std::vector<Ids>{{1, 0}, {}}, label_names(tags)),
            (std::vector<std::string>{"`` X", ""}));
}

TEST(TaggingBatches, ContinueFromAPositionAndSeeEverySentence) {
  TaggedCorpus corpus;
  Rng rng(1);
  for (int i = 0; i < 100; ++i) {
    corpus.words.emplace_back(1 + rng.below(20), 0);
    corpus.labels.emplace_back(corpus.words.back().size(), i % labels);
  }
  DataSpec spec;
  spec.mini_batch_words = 60;
  spec.maxi_batch = 3;
  TaggingBatches batches(corpus, spec, {}), other(corpus, spec, {});
  std::vector<int> seen(100);
  int count = 0;
  const std::int64_t largest = batches.largest()[0].sentences * batches.largest()[0].source_steps;
  EXPECT_LE(largest, 60);
  do {
    const Batch& batch = batches.next();
    EXPECT_LE(batch.sentences * batch.source_steps, 60);
    for (const std::int64_t line : batch.lines) ++seen[static_cast<std::size_t>(line)];
    ++count;
  } while (batches.epochs() < 1);
  EXPECT_EQ(seen, std::vector<int>(100, 1));
  EXPECT_GT(count, 15);
  for (int i = 0; i < 7; ++i) batches.next();
  other.restore(batches.position());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(other.next().lines, batches.next().lines);
  EXPECT_EQ(other.epochs(), batches.epochs());
  TaggingBatches first(corpus, spec, {0, 2}), second(corpus, spec, {1, 2});  // shares of two ranks
  TaggingBatches full(corpus, spec, {});
  for (int i = 0; i < 30; ++i) {
    std::vector<std::int64_t> both = first.next().lines;
    const std::vector<std::int64_t> more = second.next().lines, all = full.next().lines;
    both.insert(both.end(), more.begin(), more.end());
    EXPECT_TRUE(std::is_permutation(both.begin(), both.end(), all.begin(), all.end()));
  }
  for (const char* bad : {"", "1", "x 1", "1 x", "-1 0", "0 1000"})
    EXPECT_THROW(other.restore(bad), Error) << bad;
}

}  // namespace
}  // namespace nmt
