#include "app/train/validation.h"

#include "text/vocabulary/train_vocabulary.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

TEST(TranslationValidator, TriesTheSentenceThatIsLongestWithItsContext) {
  const std::string text = "a lamp is red\nthe door is old\nwe see it\n";
  const Vocabulary vocabulary = train_vocabulary(
                                    1, [&](std::int64_t) { return std::string_view(text); },
                                    {.size = 30, .max_line_bytes = 1000}, "test")
                                    .vocabulary;
  const DevelopmentSet set{
      .sources = {"the door is old, red and old", "a lamp", "it", "we see a door"},
      .references = {"a", "a", "a", "a"},
      .contexts = {{}, {"we"}, {"the door is old and red", "a lamp is red"}, {"it"}}};
  ModelSpec model;
  model.type = ModelType::rnnsearch;
  model.enc_cell = model.dec_cell = "gru";
  model.enc_depth = model.dec_depth = 1;
  model.dim_emb = model.dim_rnn = 8;
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
