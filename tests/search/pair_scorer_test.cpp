#include "search/pair_scorer.h"

#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "search/batch_translator.h"
#include "search/score_stream.h"
#include "small_vocabulary.h"
#include "table_scorer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include <gtest/gtest.h>

namespace nmt {
namespace {

class Lines : public LineSource {
 public:
  explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool next(std::string& line) override {
    if (at_ == lines_.size()) return false;
    line = lines_[at_++];
    return true;
  }
  bool ready() override { return true; }

 private:
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

class PairScorerTest : public testing::Test {
 protected:
  ThreadPool pool{2};
  const Vocabulary& vocabulary = small_vocabulary();
  TableScorer table = random_scorer(small_vocabulary().size(), 1.0);
  const std::vector<std::string> sources{"the quick fox", "", "a dog", "", "jumps over"};
  const std::vector<std::string> targets{"a lazy dog", "", "", "fox", "the the"};

  PairScorerOptions options() {
    PairScorerOptions o;
    o.cpu.pool = &pool;
    return o;
  }
  /// log p of every piece in double, directly from the table.
  std::vector<double> expected(const std::string& source, const std::string& target) {
    const Ids source_ids = vocabulary.encode(source);
    Ids target_ids = vocabulary.encode(target), prefix;
    target_ids.push_back(2);
    std::vector<double> result;
    for (const std::int32_t id : target_ids) {
      Rng rng = rng_of(source_ids, prefix, 0);
      std::vector<float> row(vocabulary.size());
      for (float& x : row) x = 1.5f * rng.normal();
      row[2] += 1.0f;
      result.push_back(row[id] - TableScorer::log_normalizer(row));
      prefix.push_back(id);
    }
    return result;
  }
  std::string run(const std::vector<std::string>& s, const std::vector<std::string>& t,
                  const ScoreOutput& output, PairScorerOptions o) {
    const std::string path = testing::TempDir() + "/pair_scorer_out";
    PairScorer scorer(table, vocabulary, vocabulary, o);
    Lines source(s), target(t);
    LineWriter writer(path);
    score_stream(scorer, source, "s.txt", target, "t.txt", writer, output);
    writer.commit();
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(path);
    return text;
  }
};

TEST_F(PairScorerTest, AgreesWithTheTable) {
  for (const int batch : {1, 2, 64}) {
    PairScorerOptions o = options();
    o.ranking.length_penalty = 0.6;
    o.batching.mini_batch = batch;
    PairScorer scorer(table, vocabulary, vocabulary, o);
    const auto scores = scorer.score(sources, targets);
    double total = 0;
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (i == 1) continue;
      const std::vector<double> words = expected(sources[i], targets[i]);
      ASSERT_EQ(scores[i].word_scores.size(), words.size());
      for (std::size_t w = 0; w < words.size(); ++w)
        EXPECT_NEAR(scores[i].word_scores[w], words[w], 1e-5);
      const double sum = std::accumulate(words.begin(), words.end(), 0.0);
      EXPECT_NEAR(scores[i].log_prob, sum, 1e-4);
      EXPECT_NEAR(scores[i].score, sum / std::pow((5.0 + words.size()) / 6.0, 0.6), 1e-4);
      total += sum;
      tokens += static_cast<std::int64_t>(words.size());
    }
    EXPECT_EQ(scores[1].log_prob, 0.0f);
    EXPECT_NEAR(summarize(scorer.totals(), Summary::ce_sum), -total, 1e-4);
    EXPECT_NEAR(summarize(scorer.totals(), Summary::cross_entropy), -total / 4, 1e-4);
    EXPECT_NEAR(summarize(scorer.totals(), Summary::ce_mean_words),
                -total / static_cast<double>(tokens), 1e-5);
    EXPECT_NEAR(summarize(scorer.totals(), Summary::perplexity),
                std::exp(-total / static_cast<double>(tokens)), 1e-4);
  }
}

TEST_F(PairScorerTest, GivesTheScoresOfTheTranslator) {
  SearchSpec spec;
  spec.coverage_penalty = 0.2;
  spec.n_best = true;
  for (const bool pieces : {false, true}) {
    BatchTranslatorOptions t = translator_options(spec, Cpu{&pool});
    t.pieces_in = t.pieces_out = pieces;
    BatchTranslator translator(table, vocabulary, vocabulary, t);
    PairScorerOptions o = options();
    o.ranking = translator.options().search.ranking;
    o.pieces_in = pieces;
    PairScorer scorer(table, vocabulary, vocabulary, o);
    std::vector<std::string> lines = sources;
    if (pieces)
      for (std::string& line : lines) line = PieceText(vocabulary).decode(vocabulary.encode(line));
    const auto translations = translator.translate(lines);
    int compared = 0;
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (const Output& output : translations[i].outputs) {
        if (!pieces && vocabulary.encode(output.text) != output.ids)
          continue;  // the random table produced unusual pieces
        const auto score = scorer.score(std::vector{lines[i]}, std::vector{output.text})[0];
        EXPECT_EQ(score.log_prob, output.log_prob);
        EXPECT_EQ(score.score, output.score);
        ++compared;
      }
    EXPECT_GE(compared, pieces ? 14 : 3);
  }
}

TEST_F(PairScorerTest, PiecesAreReadAsTheyStand) {
  const PieceText pieces(vocabulary);
  const Ids ids = vocabulary.encode("the quick dog");
  EXPECT_EQ(pieces.encode(pieces.decode(ids)), ids);
  EXPECT_EQ(pieces.encode(" " + vocabulary.piece(7) + "\t☃  " + vocabulary.piece(9)),
            (Ids{7, 0, 9}));
  EXPECT_EQ(pieces.encode("</s>"), (Ids{0}));
  EXPECT_EQ(pieces.encode("  "), Ids{});
}

TEST_F(PairScorerTest, WritesALineAPairOrOneFigure) {
  const PairScore first =
      PairScorer(table, vocabulary, vocabulary, options()).score(sources, targets)[2];
  const std::string text = run(sources, targets, {}, options());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  ScoreOutput words;
  words.word_scores = true;
  EXPECT_EQ(run({"a dog"}, {""}, words, options()),
            fmt::format("{:.6f} ||| WordScores= {:.6f}\n", first.score, first.score));
  ScoreOutput summary;
  summary.summary = Summary::ce_sum;
  EXPECT_EQ(run({"a dog"}, {""}, summary, options()), fmt::format("{:.6f}\n", -first.score));
}

TEST_F(PairScorerTest, AnNBestListGetsAFeature) {
  ScoreOutput output;
  output.n_best = true;
  const std::vector<std::string> list{"0 ||| fox ||| F0= -1 ||| -0.5",
                                      "2 ||| fox ||| 0-0 ||| F0= -1 ||| -0.5",
                                      "2 |||  ||| F0= 0 ||| 0", "2 ||| dog"};
  PairScorer scorer(table, vocabulary, vocabulary, options());
  const auto scores = scorer.score(std::vector<std::string>{"a", "c", "c", "c"},
                                   std::vector<std::string>{"fox", "fox", "", "dog"});
  EXPECT_EQ(run({"a", "b", "c", "d"}, list, output, options()),
            fmt::format("0 ||| fox ||| F0= -1 Score= {:.6f} ||| -0.5\n2 ||| fox ||| 0-0 ||| F0= -1 "
                        "Score= {:.6f} ||| -0.5\n"
                        "2 |||  ||| F0= 0 Score= {:.6f} ||| 0\n2 ||| dog ||| Score= {:.6f}\n",
                        scores[0].score, scores[1].score, scores[2].score, scores[3].score));
  // Moses writes an alignment behind the score.
  EXPECT_EQ(
      run({"a"}, {"0 ||| fox ||| LM= -1 TM= -2 ||| -2.5 ||| 0-0"}, output, options()),
      fmt::format("0 ||| fox ||| LM= -1 TM= -2 Score= {:.6f} ||| -2.5 ||| 0-0\n", scores[0].score));
  EXPECT_EQ(run({"a"}, {"0 ||| fox ||| 0-0 ||| -1.0 -2 ||| -2.5"}, output, options()),
            fmt::format("0 ||| fox ||| 0-0 ||| -1.0 -2 Score= {:.6f} ||| -2.5\n", scores[0].score));
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"text"},
                                              {"x ||| y"},
                                              {"4 ||| y"},
                                              {"1 ||| y", "0 ||| y"},
                                              {"-1 ||| y"}})
    EXPECT_THROW(run({"a", "b", "c", "d"}, bad, output, options()), Error);
}

TEST_F(PairScorerTest, UnequalFilesAreNamedWithTheirLines) {
  const auto message = [&](const std::vector<std::string>& s,
                           const std::vector<std::string>& t) -> std::string {
    try {
      run(s, t, {}, options());
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({"a"}, {"a", "b", "c"}),
            "s.txt has 1 line, but t.txt has 3: expected equal numbers");
  EXPECT_EQ(message({"a", "b"}, {"a"}),
            "s.txt has 2 lines, but t.txt has 1: expected equal numbers");
  EXPECT_EQ(message({"a", "b"}, {"a", "b"}), "");
}

TEST_F(PairScorerTest, CropsLongLines) {
  log::set_level(log::Level::off);
  PairScorerOptions o = options();
  o.batching.max_length = 3;
  PairScorer scorer(table, vocabulary, vocabulary, o);
  EXPECT_EQ(scorer.score(sources, targets)[0].word_scores.size(), 4u);
  EXPECT_GE(scorer.totals().cropped, 2);
  log::set_level(log::Level::info);
}

}  // namespace
}  // namespace nmt
