#include "tasks/language_model/text_score.h"

#include "tasks/language_model/token_stream.h"
#include "tests/support/engine.h"
#include "text/vocabulary/word_vocabulary.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Lines = std::vector<std::string>;

ModelSpec tiny() {
  ModelSpec spec;
  spec.task = Task::language_model;
  spec.dec_cell = "gru";
  spec.dim_emb = spec.dim_rnn = 8;
  spec.dec_depth = 1;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  return spec;
}

class TextFileOf {
 public:
  explicit TextFileOf(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  ~TextFileOf() { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "nmt-token-stream-" + std::to_string(::rand());
};

// a=3 b=4 c=5; </s>=2. The sequence of targets: a b 2 c 2 unk b a 2.
TEST(TokenStream, IsOneSequenceInStreams) {
  const Vocabulary vocabulary = word_vocabulary({"a", "b", "c"});
  const TextFileOf file("a b\n\nc\n<unk> b a\n  \n");
  const TextFile text(file.path_);
  TokenStream stream(text, text.lines(), vocabulary, 2, 3);
  EXPECT_EQ(stream.tokens(), 9);
  EXPECT_EQ(stream.sentences(), 3);
  EXPECT_EQ(stream.blank_lines(), 2);
  const Batch first = stream.next();  // streams: (2) a b 2 c | (c) 2 unk b a
  EXPECT_EQ(first.target_in, (Ids{2, 5, 3, 2, 4, 0}));
  EXPECT_EQ(first.target_out, (Ids{3, 2, 4, 0, 2, 4}));
  EXPECT_EQ(first.first_step, 0);
  EXPECT_EQ(stream.epochs(), 0.5);
  const std::string place = stream.position();
  const Batch second = stream.next();
  EXPECT_EQ(second.target_out, (Ids{5, 3}));
  EXPECT_EQ(second.first_step, 3);
  EXPECT_EQ(second.target_tokens, 2);
  EXPECT_EQ(stream.epochs(), 1);
  EXPECT_EQ(stream.next().target_out, first.target_out);
  stream.restore(place);
  EXPECT_EQ(stream.next().target_out, second.target_out);
  for (const char* wrong : {"", "epoch 1", "epoch 1 window 2", "epoch 1 window 1 ", "x"})
    EXPECT_THROW(stream.restore(wrong), Error) << wrong;
  EXPECT_THROW(TokenStream(text, text.lines(), vocabulary, 10, 3), Error);
}

TEST(TextScore, PerplexityCountsWordsAndSentenceEnds) {
  // Two lines of two pieces a word: -log p = 6 and 3 nats over 3 + 2 words and sentence ends.
  std::vector<LineScore> lines(3);
  lines[0].log_probability = -6, lines[0].words = 3, lines[0].tokens = 5;
  lines[2].log_probability = -3, lines[2].words = 2, lines[2].tokens = 3;
  EXPECT_NEAR(perplexity(lines), std::exp(9.0 / 5.0), 1e-12);
  const PerplexityInterval interval = perplexity_interval(lines, 1000, 1);
  // Resamples have 2 nats a word (both the first), 1.8 or 1.5.
  EXPECT_NEAR(interval.low, std::exp(1.5), 1e-9);
  EXPECT_NEAR(interval.high, std::exp(2.0), 1e-9);
  // A perplexity above float64 has a finite cross-entropy.
  lines[0].log_probability = -6000;
  EXPECT_NEAR(entropy_per_word(lines), 6003.0 / 5.0, 1e-9);
  EXPECT_TRUE(std::isinf(perplexity(lines)));
}

TEST(TextScore, ContextsAndParts) {
  const Vocabulary vocabulary = word_vocabulary({"a", "b", "c", "d"});
  const Lines lines{"a b c", "", "d d", "x a", "b", " ", "c c c c c a"};
  test::Engine engine(2);
  LanguageModel model(tiny(), vocabulary.size(), engine.context, 3, 0);
  model.freeze();
  ScoringSettings text, line;
  line.context = LineContext::line;
  const auto by_text = score_lines(model, vocabulary, lines, text),
             by_line = score_lines(model, vocabulary, lines, line);
  ASSERT_EQ(by_text.size(), lines.size());
  EXPECT_EQ(by_text[0].log_probability, by_line[0].log_probability);  // nothing before it
  EXPECT_NE(by_text[2].log_probability, by_line[2].log_probability);
  EXPECT_EQ(by_text[1].words, 0);
  EXPECT_EQ(by_text[1].log_probability, 0);
  EXPECT_EQ(by_text[3].words, 3);
  EXPECT_EQ(by_text[5].tokens, 0);
  EXPECT_EQ(by_text[3].unknown, 1);
  EXPECT_EQ(by_text[6].token_scores.size(), 7u);
  // The window of a batch and the neighbors of a line change nothing.
  ScoringSettings narrow = text, few = line;
  narrow.steps = 2;
  few.batch_tokens = 1;
  const auto in_windows = score_lines(model, vocabulary, lines, narrow),
             alone = score_lines(model, vocabulary, lines, few);
  // As many parts as lines: every line begins after </s>.
  ScoringSettings parts = text;
  parts.parts = 100;
  const auto apart = score_lines(model, vocabulary, lines, parts);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(in_windows[i].token_scores, by_text[i].token_scores);
    EXPECT_EQ(alone[i].token_scores, by_line[i].token_scores);
    EXPECT_EQ(apart[i].token_scores, by_line[i].token_scores);
  }
}

}  // namespace
}  // namespace nmt
