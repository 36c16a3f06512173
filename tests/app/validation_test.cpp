#include "app/train/validation.h"

#include "core/error.h"
#include "core/files/file.h"
#include "model/model.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

Vocabulary small_vocabulary() {
  const std::string text = "a lamp is red\nthe door is old\nwe see it\n";
  return train_vocabulary(
             1, [&](std::int64_t) { return std::string_view(text); },
             {.size = 30, .max_line_bytes = 1000}, "test")
      .vocabulary;
}

ModelSpec small_model() {
  ModelSpec model;
  model.type = ModelType::rnnsearch;
  model.enc_cell = model.dec_cell = "gru";
  model.enc_depth = model.dec_depth = 1;
  model.dim_emb = model.dim_rnn = 8;
  model.dropout_emb = model.dropout_rnn = 0;
  return model;
}

// More pairs than a batch of the cross-entropy holds, which several workers share.
TEST(TranslationValidator, IsTheSameWithAnyThreadsAndWorkers) {
  const Vocabulary vocabulary = small_vocabulary();
  DevelopmentSet set;
  const char* const words[] = {"a lamp", "the door is old", "we see it and a red door", "it is"};
  for (int i = 0; i < 900; ++i) {
    set.sources.emplace_back(words[i % 4]);
    set.references.emplace_back(words[(i / 4) % 4]);
  }
  const ModelSpec model = small_model();
  SearchSpec search;
  search.beam_size = 2;
  search.max_length = 20;
  std::map<std::string, double> expected;
  for (const auto& [threads, workers] : {std::pair(1, 0), {2, 0}, {3, 0}, {4, 2}, {2, 4}, {3, 1}}) {
    ComputeSpec spec = float32_compute();
    spec.cpu_threads = threads;
    spec.workers = workers;
    Compute compute(spec, ComputeUse::training);
    const std::unique_ptr<Arena> arena = compute.new_arena();
    Model source(model, vocabulary.size(), vocabulary.size(), compute.context(*arena), 3);
    TranslationValidator validator(
        model, {ValidMetric::bleu, ValidMetric::cross_entropy, ValidMetric::perplexity}, 0, search,
        vocabulary, vocabulary, set, compute);
    const train::CopyWeights weights = [&](ParameterSet& to) {
      auto from = source.parameters().all().cbegin();
      for (Parameter& parameter : to.all()) {
        std::copy_n(from->value.f32(), from->value.elements(), parameter.value.f32());
        ++from;
      }
    };
    validator.dry_run(weights);
    std::map<std::string, double> found;
    for (const auto& metric : validator.validate(weights, {})) found[metric.name] = metric.value;
    ASSERT_EQ(found.size(), 3u);
    EXPECT_DOUBLE_EQ(found["perplexity"], std::exp(found["cross-entropy"]));
    if (expected.empty()) {
      expected = found;
      // All pairs in one batch, by the model as it trains.
      std::vector<Ids> ids;
      std::vector<const Ids*> sources, targets;
      ids.reserve(2 * set.sources.size());
      for (std::size_t i = 0; i < set.sources.size(); ++i) {
        sources.push_back(&ids.emplace_back(vocabulary.encode(set.sources[i])));
        targets.push_back(&ids.emplace_back(vocabulary.encode(set.references[i])));
      }
      const BatchLoss loss =
          source.evaluate(make_batch(sources, targets, vocabulary.bos(), vocabulary.eos()));
      EXPECT_NEAR(found["cross-entropy"], loss.cross_entropy / static_cast<double>(loss.tokens),
                  1e-5);
    }
    EXPECT_EQ(found, expected) << threads << " threads, " << workers << " workers";
  }
}

// The training decides what becomes of weights that have blown up.
TEST(TranslationValidator, HasNoBleuOfScoresThatAreNotFinite) {
  const Vocabulary vocabulary = small_vocabulary();
  ComputeSpec spec = float32_compute();
  spec.cpu_threads = 2;
  Compute compute(spec, ComputeUse::training);
  SearchSpec search;
  search.max_length = 20;
  TranslationValidator validator(
      small_model(), {ValidMetric::bleu, ValidMetric::chrf, ValidMetric::cross_entropy}, 0, search,
      vocabulary, vocabulary, {{"a lamp", "we see it"}, {"a lamp", "we see it"}, {}}, compute);
  const std::string path = testing::TempDir() + "validation_test.json";
  validator.keep_translations(path);
  const auto values = [&](float weight) {
    return validator.validate(
        [weight](ParameterSet& to) {
          for (Parameter& parameter : to.all())
            std::fill_n(parameter.value.f32(), parameter.value.elements(), weight);
        },
        {});
  };
  for (const train::MetricValue& metric : values(0.01f))
    EXPECT_TRUE(std::isfinite(metric.value)) << metric.name;
  const std::string kept = read_file(path);
  const train::ValidationResult bad = values(std::numeric_limits<float>::quiet_NaN());
  ASSERT_EQ(bad.size(), 3u);
  for (const train::MetricValue& metric : bad)
    EXPECT_FALSE(std::isfinite(metric.value)) << metric.name;
  EXPECT_EQ(read_file(path), kept);
}

TEST(TranslationValidator, TellsOnceThatTheCrossEntropyReadsTheBeginningOfLongSides) {
  const Vocabulary vocabulary = small_vocabulary();
  ComputeSpec spec = float32_compute();
  spec.cpu_threads = 1;
  Compute compute(spec, ComputeUse::training);
  std::string line = "a";
  for (int i = 0; i < 1000; ++i) line += " a";
  const auto told = [&](ValidMetric metric, const std::string& reference) {
    SearchSpec search;
    search.max_length = 20;
    TranslationValidator validator(small_model(), {metric}, 0, search, vocabulary, vocabulary,
                                   {{"a lamp", "we see it"}, {"a lamp", reference}, {}, "dev.en"},
                                   compute);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i)
      validator.validate(
          [](ParameterSet& to) {
            for (Parameter& parameter : to.all())
              std::fill_n(parameter.value.f32(), parameter.value.elements(), 0.01f);
          },
          {});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told(ValidMetric::cross_entropy, line),
            "warning: dev.en: the development pairs have 1 side of more than 1000 tokens; the "
            "cross-entropy of validations is that of the first 1000\n");
  EXPECT_EQ(told(ValidMetric::cross_entropy, "we see it"), "");
  EXPECT_EQ(told(ValidMetric::bleu, line).find("cross-entropy"), std::string::npos);
}

TEST(TranslationValidator, ADevelopmentSetWithoutTextIsNamed) {
  const Vocabulary vocabulary = small_vocabulary();
  const DevelopmentSet set{.sources = {"a lamp", ""},
                           .references = {"", "a lamp"},
                           .contexts = {},
                           .source_file = "dev.en",
                           .reference_file = "dev.de"};
  ComputeSpec threads = float32_compute();
  threads.cpu_threads = 1;
  Compute compute(threads);
  try {
    const TranslationValidator validator(small_model(), {ValidMetric::bleu}, 0, SearchSpec{},
                                         vocabulary, vocabulary, set, compute);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    EXPECT_STREQ(error.what(),
                 "dev.en and dev.de: the development set has no pair with text on both sides");
  }
}

TEST(TranslationValidator, TriesTheSentenceThatIsLongestWithItsContext) {
  const Vocabulary vocabulary = small_vocabulary();
  const DevelopmentSet set{
      .sources = {"the door is old, red and old", "a lamp", "it", "we see a door"},
      .references = {"a", "a", "a", "a"},
      .contexts = {{}, {"we"}, {"the door is old and red", "a lamp is red"}, {"it"}}};
  ModelSpec model = small_model();
  ComputeSpec threads = float32_compute();
  threads.cpu_threads = 1;
  Compute compute(threads);
  const auto longest = [&](int sentences, int max_length) {
    model.context_sentences = sentences;
    SearchSpec search;
    search.max_length = max_length;
    DevelopmentSet some = set;
    if (sentences == 0) some.contexts.clear();
    const TranslationValidator validator(model, {ValidMetric::bleu}, 0, search, vocabulary,
                                         vocabulary, some, compute);
    return validator.longest_sentence();
  };
  EXPECT_EQ(longest(0, 1000), 0u);
  EXPECT_EQ(longest(2, 1000), 2u);
  // Where the context of the third does not fit, it is among the shortest.
  const auto room = static_cast<int>(vocabulary.encode(set.sources[0]).size());
  ASSERT_LT(vocabulary.encode("it").size() + 1 + vocabulary.encode("a lamp is red").size(),
            static_cast<std::size_t>(room));
  EXPECT_EQ(longest(2, room), 0u);
}

}  // namespace
}  // namespace nmt::app
