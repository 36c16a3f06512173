#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "search/batch_translator.h"
#include "search/pair_scorer.h"
#include "search/score_stream.h"
#include "search/stream.h"
#include "search/text/text_translator.h"
#include "small_vocabulary.h"
#include "table_scorer.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Texts = std::vector<std::string>;

std::size_t begin_of_sentence(const Ids& source) {
  return static_cast<std::size_t>(source.rend() - std::find(source.rbegin(), source.rend(), 2));
}

/// Copies the sentence behind its context piece by piece, with its attention on the copied piece.
TableScorer sentence_copier() {
  return TableScorer(
      small_vocabulary().size(),
      [](const Ids& source, const Ids& prefix) {
        const std::size_t at = begin_of_sentence(source) + prefix.size();
        std::vector<float> logits(small_vocabulary().size(), -5.0f);
        logits[at < source.size() ? source[at] : 2] = 5.0f;
        return logits;
      },
      [](const Ids& source, const Ids& prefix) {
        std::vector<float> weights(source.size() + 1, 0.0f);
        weights[std::min(begin_of_sentence(source) + prefix.size(), source.size())] = 1.0f;
        return weights;
      });
}

/// Loses every span, so that lines with spans are translated in parts.
TableScorer span_loser() {
  return TableScorer(small_vocabulary().size(), [](const Ids&, const Ids& prefix) {
    std::vector<float> logits(small_vocabulary().size(), -5.0f);
    logits[prefix.empty() ? 7 : 2] = 5.0f;
    return logits;
  });
}

Ids joined(const Texts& sentences) {
  Ids all;
  for (const std::string& sentence : sentences) {
    if (!all.empty()) all.push_back(2);
    const Ids ids = small_vocabulary().encode(sentence);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

class ContextTest : public testing::Test {
 protected:
  ThreadPool pool{2};
  const Texts lines{"the fox", "a dog", "the lazy fox", "", "over it", "the dog jumps", "a fox"};
  // With two context sentences, the inputs for the lines with text.
  const std::vector<Ids> inputs{joined({"the fox"}),
                                joined({"the fox", "a dog"}),
                                joined({"the fox", "a dog", "the lazy fox"}),
                                joined({"over it"}),
                                joined({"over it", "the dog jumps"}),
                                joined({"over it", "the dog jumps", "a fox"})};

  BatchTranslatorOptions options(int sentences) {
    BatchTranslatorOptions o = translator_options(SearchSpec{}, Cpu{&pool});
    o.context_sentences = sentences;
    return o;
  }
  PairScorerOptions pair_options() {
    PairScorerOptions o;
    o.cpu.pool = &pool;
    o.context_sentences = 2;
    return o;
  }
  static std::vector<Ids> sorted(std::vector<Ids> all) {
    std::sort(all.begin(), all.end());
    return all;
  }
  static Texts texts(const std::vector<LineTranslation>& translations) {
    Texts result;
    for (const LineTranslation& t : translations) result.push_back(t.outputs.at(0).text);
    return result;
  }
};

TEST_F(ContextTest, TheModelReadsTheContextOfTheDocument) {
  for (const int batch : {1, 2, 64}) {
    TableScorer scorer = sentence_copier();
    BatchTranslatorOptions o = options(2);
    o.batching.mini_batch = batch;
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    EXPECT_EQ(texts(translator.translate(lines)), lines);
    EXPECT_EQ(sorted(scorer.encoded), sorted(inputs));
    EXPECT_EQ(translator.statistics().source_tokens, translator.statistics().target_tokens);
  }
  TableScorer scorer = sentence_copier();
  BatchTranslator alone(scorer, small_vocabulary(), small_vocabulary(), options(0));
  alone.translate(lines);
  EXPECT_EQ(std::count(scorer.encoded.begin(), scorer.encoded.end(), joined({"a dog"})), 1);
}

TEST_F(ContextTest, GivenContextsAreThose) {
  TableScorer scorer = sentence_copier();
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), options(1));
  const std::vector<ContextSentences> contexts{{"the dog", "over it"}, {}};
  translator.translate(std::span(lines).first(2), 1, contexts);
  EXPECT_EQ(sorted(scorer.encoded), sorted({joined({"over it", "the fox"}), joined({"a dog"})}));
  EXPECT_THROW(translator.translate(std::span(lines).first(3), 1, contexts), Error);
}

/// Lines of which `ready` are there at a time.
class Slow : public LineSource {
 public:
  Slow(const Texts& lines, std::size_t ready) : lines_(lines), ready_(ready) {}
  bool next(std::string& line) override {
    if (at_ == lines_.size()) return false;
    line = lines_[at_++];
    return true;
  }
  bool ready() override { return at_ % ready_ != 0; }

 private:
  const Texts& lines_;
  std::size_t ready_, at_ = 0;
};

TEST_F(ContextTest, WindowsAndPortionsOfAStreamDoNotChangeIt) {
  for (const auto& [window, portion] : {std::pair(1, 1), {2, 100}, {3, 2}, {100, 1}, {100, 3}}) {
    TableScorer scorer = sentence_copier();
    BatchTranslatorOptions o = options(2);
    o.batching.mini_batch = window;
    o.batching.maxi_batch = 1;
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    Slow source(lines, static_cast<std::size_t>(portion));
    LineWriter writer("/dev/null");
    EXPECT_EQ(translate_stream(translator, source, writer, true), 7);
    EXPECT_EQ(sorted(scorer.encoded), sorted(inputs)) << window << ' ' << portion;
  }
}

TEST_F(ContextTest, AlignmentsAreOfTheSentence) {
  TableScorer scorer = sentence_copier();
  BatchTranslatorOptions o = options(2);
  for (const AlignmentKind kind : {AlignmentKind::word, AlignmentKind::subword}) {
    o.alignment = kind;
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    const Output output = translator.translate(lines)[2].outputs.at(0);
    const int count = kind == AlignmentKind::word ? 3 : static_cast<int>(output.ids.size());
    ASSERT_EQ(std::ssize(output.alignment), count);
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(output.alignment[static_cast<std::size_t>(i)], (AlignmentPoint{i, i}));
  }
}

TEST_F(ContextTest, ALongInputLosesItsOldestSentences) {
  log::set_level(log::Level::off);
  const auto encoded = [&](int max_length) {
    TableScorer scorer = sentence_copier();
    BatchTranslatorOptions o = options(2);
    o.batching.max_length = max_length;
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    translator.translate(std::span(lines).first(3));
    return std::pair(scorer.encoded.front(), translator.statistics().cropped);
  };
  const auto size = [&](std::size_t i) { return static_cast<int>(joined({lines[i]}).size()); };
  const int own = size(2);
  const auto only_last = joined({lines[1], lines[2]});
  EXPECT_EQ(encoded(static_cast<int>(inputs[2].size())), std::pair(inputs[2], std::int64_t{0}));
  EXPECT_EQ(encoded(static_cast<int>(inputs[2].size()) - 1), std::pair(only_last, std::int64_t{0}));
  EXPECT_EQ(encoded(own), std::pair(joined({lines[2]}), std::int64_t{0}));
  Ids cropped = joined({lines[2]});
  cropped.pop_back();
  EXPECT_EQ(encoded(own - 1), std::pair(cropped, std::int64_t{1}));
  log::set_level(log::Level::info);
}

// Neither the length of the output nor coverage depend on the context.
TEST_F(ContextTest, LimitsAndPenaltiesAreOfTheSentence) {
  TableScorer endless(
      small_vocabulary().size(),
      [](const Ids&, const Ids&) {
        std::vector<float> logits(small_vocabulary().size(), -5.0f);
        logits[7] = 5.0f;
        return logits;
      },
      [](const Ids& source, const Ids&) {
        return std::vector<float>(source.size() + 1, 1.0f / static_cast<float>(source.size() + 1));
      });
  BatchTranslatorOptions o = options(2);
  o.search.max_length_factor = 2;
  o.search.max_length_offset = 1;
  BatchTranslator translator(endless, small_vocabulary(), small_vocabulary(), o);
  EXPECT_EQ(translator.translate(lines)[1].outputs[0].ids.size(), 2 * joined({"a dog"}).size() + 1);

  TableScorer scorer = sentence_copier();  // covers its sentence, never the context
  o = options(2);
  BatchTranslator plain(scorer, small_vocabulary(), small_vocabulary(), o);
  o.search.ranking.coverage_penalty = 0.5;
  BatchTranslator covered(scorer, small_vocabulary(), small_vocabulary(), o);
  EXPECT_EQ(covered.translate(lines)[2].outputs[0].score,
            plain.translate(lines)[2].outputs[0].score);
  PairScorerOptions scoring = pair_options();
  scoring.ranking = o.search.ranking;
  PairScorer pairs(scorer, small_vocabulary(), small_vocabulary(), scoring);
  EXPECT_NEAR(pairs.score(lines, lines)[2].score, plain.translate(lines)[2].outputs[0].score, 1e-6);
}

TEST_F(ContextTest, TextRulesApplyToTheContext) {
  TableScorer scorer = sentence_copier();
  BatchTranslator plain(scorer, small_vocabulary(), small_vocabulary(), options(1));
  TextRules rules;
  rules.recase = true;
  rules.preserve.marked = true;
  TextTranslator::Statistics statistics;
  TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
  translator.translate(Texts{"THE QUICK DOG", "a <keep>fox</keep>", "it jumps"});
  EXPECT_EQ(sorted(scorer.encoded),
            sorted({joined({"The quick dog"}), joined({"The quick dog", "a fox"}),
                    joined({"a fox", "it jumps"})}));
}

TEST_F(ContextTest, PartsOfALineHaveItsContext) {
  TableScorer scorer = span_loser();
  BatchTranslator plain(scorer, small_vocabulary(), small_vocabulary(), options(1));
  TextRules rules;
  rules.preserve.placeholders = true;
  TextTranslator::Statistics statistics;
  TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
  translator.translate(Texts{"the dog", "a fox {name} jumps"});
  EXPECT_EQ(statistics.in_parts, 1);
  const auto has = [&](const Ids& ids) {
    return std::count(scorer.encoded.begin(), scorer.encoded.end(), ids);
  };
  EXPECT_EQ(has(joined({"the dog", "a fox"})), 1);
  EXPECT_EQ(has(joined({"the dog", "jumps"})), 1);
}

TEST_F(ContextTest, PartsReadAsMuchContextAsLinesOfTheirLength) {
  const Texts line{"the lazy dog {a} it {b} fox"}, parts{"the lazy dog", "it", "fox"};
  const ContextSentences context{"over the fox", "\u200b", "a dog", "jumps", "\u200b"};
  const std::vector<ContextSentences> contexts(3, context);
  TextRules rules;
  rules.preserve.placeholders = true;
  log::set_level(log::Level::off);
  for (const int sentences : {1, 3, 5})
    for (int max_length = 1; max_length < 40; ++max_length) {
      TableScorer scorer = span_loser(), expected = span_loser();
      BatchTranslatorOptions o = options(sentences);
      o.batching.max_length = max_length;
      o.batching.mini_batch = 1;
      BatchTranslator plain(scorer, small_vocabulary(), small_vocabulary(), o),
          other(expected, small_vocabulary(), small_vocabulary(), o);
      TextTranslator::Statistics statistics;
      TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
      translator.translate(line, 1, std::span(contexts).first(1));
      other.translate(line, 1, std::span(contexts).first(1));
      other.translate_parts(parts, contexts);
      EXPECT_EQ(scorer.encoded, expected.encoded) << sentences << ' ' << max_length;
      const auto used = plain.encoder().used_context(context, joined({"fox"}).size());
      Texts read(used.begin(), used.end());
      read.emplace_back("fox");
      std::erase(read, "\u200b");  // has no pieces
      Ids ids = joined(read);
      ids.resize(std::min(ids.size(), static_cast<std::size_t>(max_length)));
      EXPECT_GE(std::count(scorer.encoded.begin(), scorer.encoded.end(), ids), 1)
          << sentences << ' ' << max_length;
    }
  log::set_level(log::Level::info);
}

TEST_F(ContextTest, ManyPartsWithALongContextTakeLinearTime) {
  Texts texts(2);
  while (texts[0].size() < 300'000) texts[0] += "the quick fox ";
  for (int i = 0; i < 400; ++i) texts[1] += "a {name} ";
  TextRules rules;
  rules.preserve.placeholders = true;
  TableScorer scorer = span_loser();
  BatchTranslator plain(scorer, small_vocabulary(), small_vocabulary(), options(1));
  TextTranslator::Statistics statistics;
  TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
  const auto start = std::chrono::steady_clock::now();
  log::set_level(log::Level::off);
  translator.translate(texts);
  log::set_level(log::Level::info);
  EXPECT_EQ(statistics.in_parts, 1);
  // A fraction of a second; half a minute where every part encodes the context.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ContextTest, PairsAreScoredWithTheContextOfTheirSources) {
  for (const int window : {1, 2, 100}) {
    TableScorer scorer = sentence_copier();
    PairScorerOptions o = pair_options();
    o.batching.mini_batch = window;
    o.batching.maxi_batch = 1;
    o.alignment = AlignmentKind::word;
    PairScorer pairs(scorer, small_vocabulary(), small_vocabulary(), o);
    Slow sources(lines, 100), targets(lines, 100);
    LineWriter writer("/dev/null");
    score_stream(pairs, sources, "s", targets, "t", writer, {});
    EXPECT_EQ(sorted(scorer.encoded), sorted(inputs)) << window;

    // Several hypotheses of a line have its context.
    scorer.encoded.clear();
    Texts list;
    for (const char* line : {"0 ||| x", "2 ||| x", "2 ||| y", "4 ||| z", "5 ||| z"})
      list.emplace_back(line);
    Slow again(lines, 100), hypotheses(list, 100);
    ScoreOutput output;
    output.n_best = true;
    score_stream(pairs, again, "s", hypotheses, "t", writer, output);
    EXPECT_EQ(sorted(scorer.encoded),
              sorted({inputs[0], inputs[2], inputs[2], inputs[3], inputs[4]}))
        << window;
  }
}

TEST_F(ContextTest, PairsAreAlignedWithTheSentence) {
  TableScorer scorer = sentence_copier();
  PairScorerOptions o = pair_options();
  o.alignment = AlignmentKind::word;
  PairScorer pairs(scorer, small_vocabulary(), small_vocabulary(), o);
  EXPECT_EQ(pairs.score(lines, lines)[2].alignment,
            (std::vector<AlignmentPoint>{{0, 0}, {1, 1}, {2, 2}}));
}

}  // namespace
}  // namespace nmt
