#include "search/batch_translator.h"

#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "search/stream.h"
#include "small_vocabulary.h"
#include "table_scorer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

/// Copies the source piece by piece, with its attention on the copied piece.
TableScorer copier() {
  return TableScorer(
      small_vocabulary().size(),
      [](const Ids& source, const Ids& prefix) {
        std::vector<float> logits(small_vocabulary().size(), -5.0f);
        logits[prefix.size() < source.size() ? source[prefix.size()] : 2] = 5.0f;
        return logits;
      },
      [](const Ids& source, const Ids& prefix) {
        std::vector<float> weights(source.size() + 1, 0.0f);
        weights[std::min(prefix.size(), source.size())] = 1.0f;
        return weights;
      });
}

class TranslatorTest : public testing::Test {
 protected:
  ThreadPool pool{2};
  BatchTranslatorOptions options() {
    BatchTranslatorOptions o = translator_options(SearchSpec{}, Cpu{&pool});
    return o;
  }
  static std::vector<std::string> some_lines(int n) {
    const std::vector<std::string> words{"the",  "quick", "brown", "fox", "jumps",
                                         "over", "a",     "lazy",  "dog"};
    std::vector<std::string> lines;
    Rng rng(7);
    for (int i = 0; i < n; ++i) {
      std::string line;
      for (std::uint64_t k = rng.below(12); k > 0; --k)
        line += (line.empty() ? "" : " ") + words[rng.below(words.size())];
      lines.push_back(line);
    }
    return lines;
  }
  static std::vector<std::string> texts(const std::vector<LineTranslation>& translations) {
    std::vector<std::string> result;
    for (const LineTranslation& t : translations) result.push_back(t.outputs.at(0).text);
    return result;
  }
};

TEST_F(TranslatorTest, LinesComeBackInOrder) {
  const std::vector<std::string> lines = some_lines(500);
  for (const bool sort : {true, false}) {
    TableScorer scorer = copier();
    BatchTranslatorOptions o = options();
    o.batching.sort_by_length = sort;
    o.batching.mini_batch = 7;
    std::int64_t told = 0;
    o.on_batch = [&](std::int64_t sentences) { told += sentences; };
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    EXPECT_EQ(texts(translator.translate(lines)), lines);
    const auto empty = std::count(lines.begin(), lines.end(), "");
    EXPECT_GT(empty, 0);
    EXPECT_EQ(translator.statistics().sentences, 500 - empty);
    EXPECT_EQ(translator.statistics().source_tokens, translator.statistics().target_tokens);
    EXPECT_EQ(scorer.begins, (500 - empty + 6) / 7);
    EXPECT_EQ(told, 500);
  }
}

TEST_F(TranslatorTest, EmptyLinesNeverReachTheModel) {
  TableScorer scorer = copier();
  BatchTranslatorOptions o = options();
  o.search.n_best = true;
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
  const std::vector<std::string> lines{"", "  \t ", "\r", "\u3000\u00a0"};
  const auto translations = translator.translate(lines);
  EXPECT_EQ(texts(translations), std::vector<std::string>(4));
  EXPECT_EQ(scorer.begins, 0);
  EXPECT_EQ(format_translation(translations[1], 1, translator.options()),
            "1 |||  ||| F0= 0.000000 ||| 0.000000\n");
}

TEST_F(TranslatorTest, ResultsDoNotDependOnBatchesOrOrder) {
  const std::vector<std::string> lines = some_lines(64);
  const auto run = [&](const std::vector<std::string>& input, int batch, bool sort) {
    TableScorer scorer = random_scorer(small_vocabulary().size(), 3.0);
    BatchTranslatorOptions o = options();
    o.search.n_best = true;
    o.alignment = AlignmentKind::word;
    o.batching.mini_batch = batch;
    o.batching.sort_by_length = sort;
    BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
    std::vector<std::string> result;
    for (const LineTranslation& t : translator.translate(input))
      result.push_back(format_translation(t, 0, translator.options()));
    return result;
  };
  const auto reference = run(lines, 64, true);
  for (const int batch : {1, 2, 7}) EXPECT_EQ(run(lines, batch, true), reference);
  EXPECT_EQ(run(lines, 7, false), reference);
  auto reversed = run({lines.rbegin(), lines.rend()}, 7, true);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(reversed, reference);
}

/// Throws std::bad_alloc for batches with more than this many padded tokens.
struct SmallScorer : StepScorer {
  SmallScorer(StepScorer& inner_, std::size_t most_) : inner(inner_), most(most_) {}
  int vocabulary() const override { return inner.vocabulary(); }
  std::unique_ptr<Decoding> begin(std::span<const Ids> sources, bool want_attention) override {
    std::size_t longest = 0;
    for (const Ids& source : sources) longest = std::max(longest, source.size());
    if (longest * sources.size() > most) {
      ++refused;
      throw std::bad_alloc();
    }
    return inner.begin(sources, want_attention);
  }
  StepScorer& inner;
  std::size_t most;
  int refused = 0;
};

TEST_F(TranslatorTest, ABatchWithoutMemoryIsDoneInParts) {
  TableScorer scorer = copier();
  const std::vector<std::string> lines = some_lines(60);
  BatchTranslator whole(scorer, small_vocabulary(), small_vocabulary(), options());
  const std::vector<std::string> expected = texts(whole.translate(lines));
  SmallScorer small(scorer, 90);
  BatchTranslator parts(small, small_vocabulary(), small_vocabulary(), options());
  log::set_level(log::Level::off);
  EXPECT_EQ(texts(parts.translate(lines)), expected);
  EXPECT_GT(small.refused, 0);
  const int refused = small.refused;
  EXPECT_EQ(texts(parts.translate(lines)), expected);
  EXPECT_EQ(small.refused, refused) << "what was too large is not tried again";
  SmallScorer none(scorer, 2);
  BatchTranslator never(none, small_vocabulary(), small_vocabulary(), options());
  EXPECT_THROW(never.translate(lines), std::bad_alloc);
  log::set_level(log::Level::info);
}

TEST_F(TranslatorTest, LongLinesAreCroppedAndBatchesOfThemAreSmall) {
  log::set_level(log::Level::off);
  TableScorer scorer = copier();
  BatchTranslatorOptions o = options();
  o.batching.max_length = 5;
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
  const std::vector<std::string> lines{"the quick brown fox jumps over a lazy dog", "a",
                                       "the quick brown fox jumps over a lazy dog"};
  const auto translations = translator.translate(lines);
  EXPECT_EQ(translations[0].outputs[0].ids.size(), 5u);
  EXPECT_EQ(translations[1].outputs[0].text, "a");
  EXPECT_EQ(translator.statistics().cropped, 2);

  TableScorer other = copier();
  BatchTranslator wide(other, small_vocabulary(), small_vocabulary(), options());
  std::string line;
  for (int i = 0; i < 100; ++i) line += "the quick brown fox jumps over a lazy dog ";
  const std::size_t tokens = std::min<std::size_t>(small_vocabulary().encode(line).size(), 1000);
  wide.translate(std::vector<std::string>(16, line));
  EXPECT_EQ(other.begins, static_cast<int>((16 * (tokens + 1) + 64 * 128 - 1) / (64 * 128)));
  log::set_level(log::Level::info);
}

TEST_F(TranslatorTest, ARepetitionIsReportedOnceUnlessTheSourceRepeats) {
  TableScorer stuck(small_vocabulary().size(), [](const Ids&, const Ids& prefix) {
    std::vector<float> logits(small_vocabulary().size(), -5.0f);
    logits[prefix.size() < 12 ? 7 : 2] = 5.0f;
    return logits;
  });
  BatchTranslatorOptions o = options();
  o.warn_repetitions = true;
  BatchTranslator translator(stuck, small_vocabulary(), small_vocabulary(), o);
  testing::internal::CaptureStderr();
  const std::vector<LineTranslation> out =
      translator.translate(std::vector<std::string>{"", "the fox", "a dog"}, 11);
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_NE(warnings.find("line 12: the translation repeats a sequence 12 times in a row"),
            std::string::npos)
      << warnings;
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1) << warnings;
  EXPECT_EQ(out[0].repeated, 0);
  EXPECT_EQ(out[1].repeated, 12);
  EXPECT_EQ(translator.statistics().repeating, 2);

  TableScorer copies = copier();
  BatchTranslator fair(copies, small_vocabulary(), small_vocabulary(), o);
  EXPECT_EQ(fair.translate(std::vector<std::string>{"the the the the the the the the the the"})[0]
                .repeated,
            0);
}

TEST_F(TranslatorTest, WordsOfTheRawTextAreAligned) {
  TableScorer scorer = copier();
  SearchSpec spec;
  spec.alignment = AlignmentKind::word;
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(),
                             translator_options(spec, Cpu{&pool}));
  const std::vector<std::string> lines{"the  quick fox", "a\u00a0lazy dog fox", "the \u200b dog"};
  const auto translations = translator.translate(lines);
  EXPECT_EQ(format_translation(translations[0], 0, translator.options()),
            "the quick fox ||| 0-0 1-1 2-2\n");
  // Normalization turns a no-break space into a space: raw word 0 becomes two words of the output.
  EXPECT_EQ(pharaoh(translations[1].outputs[0].alignment), "0-0 0-1 1-2 2-3");
  // It removes a zero-width space that was a word: "dog" is still raw word 2.
  EXPECT_EQ(pharaoh(translations[2].outputs[0].alignment), "0-0 2-1");
  spec.alignment = AlignmentKind::subword;
  BatchTranslator pieces(scorer, small_vocabulary(), small_vocabulary(),
                         translator_options(spec, Cpu{&pool}));
  const auto copied = pieces.translate(lines);
  ASSERT_EQ(copied[0].outputs[0].alignment.size(), small_vocabulary().encode(lines[0]).size());
  for (std::size_t i = 0; i < copied[0].outputs[0].alignment.size(); ++i)
    EXPECT_EQ(copied[0].outputs[0].alignment[i],
              (AlignmentPoint{static_cast<int>(i), static_cast<int>(i)}));
}

TEST_F(TranslatorTest, NBestListsHaveTheFormatOfMoses) {
  TableScorer scorer = copier();
  SearchSpec spec;
  spec.n_best = true;
  spec.beam_size = 2;
  spec.length_penalty = 0;
  spec.normalize = 1;
  spec.alignment = AlignmentKind::word;
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(),
                             translator_options(spec, Cpu{&pool}));
  const auto translations = translator.translate(std::vector<std::string>{"a dog"});
  const std::string text = format_translation(translations[0], 41, translator.options());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const Output& best = translations[0].outputs[0];
  EXPECT_TRUE(text.starts_with(fmt::format("41 ||| a dog ||| 0-0 1-1 ||| F0= {:.6f} ||| {:.6f}\n",
                                           best.log_prob, best.score)))
      << text;
  EXPECT_NEAR(best.score, best.log_prob / static_cast<float>(best.ids.size() + 1), 1e-6);
}

TEST_F(TranslatorTest, RefusesWordsAndNumbersItDoesNotKnow) {
  TableScorer scorer = copier();
  SearchSpec spec;
  spec.mini_batch = 0;
  EXPECT_THROW(BatchTranslator(scorer, small_vocabulary(), small_vocabulary(),
                               translator_options(spec, Cpu{&pool})),
               Error);
  TableScorer other(7, [](const Ids&, const Ids&) { return std::vector<float>(7); });
  EXPECT_THROW(BatchTranslator(other, small_vocabulary(), small_vocabulary(), options()), Error);
}

/// Lines that arrive in portions; counts how often a portion is waited for.
class Portions : public LineSource {
 public:
  explicit Portions(std::deque<std::deque<std::string>> portions)
      : portions_(std::move(portions)) {}
  bool next(std::string& line) override {
    if (portions_.empty()) return false;
    if (portions_.front().empty()) {
      if (on_wait) on_wait();
      portions_.pop_front();
      return next(line);
    }
    line = portions_.front().front();
    portions_.front().pop_front();
    ++given;
    return true;
  }
  bool ready() override { return portions_.empty() || !portions_.front().empty(); }
  std::function<void()> on_wait;
  std::int64_t given = 0;

 private:
  std::deque<std::deque<std::string>> portions_;
};

TEST_F(TranslatorTest, TranslatesWhatHasArrivedBeforeBlocking) {
  const std::filesystem::path folder = testing::TempDir() + "/translator_stream_out";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder / "out";
  TableScorer scorer = copier();
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), options());
  LineWriter writer(path);
  Portions source({{"the dog", "", "a fox"}, {"the fox"}, {}, {"a dog"}});
  std::vector<std::int64_t> answered;
  source.on_wait = [&] {
    std::ifstream file(std::filesystem::directory_iterator(folder)
                           ->path());  // the only file there, still with a temporary name
    const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    EXPECT_EQ(lines, source.given);
    answered.push_back(lines);
  };
  EXPECT_EQ(translate_stream(translator, source, writer, true), 5);
  EXPECT_EQ(answered, (std::vector<std::int64_t>{3, 4, 4, 5}));
  writer.commit();
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "the dog\n\na fox\nthe fox\na dog\n");
  std::filesystem::remove_all(folder);
}

TEST_F(TranslatorTest, TranslatesAPipeLineByLine) {
  int in[2], out[2];
  ASSERT_EQ(::pipe(in), 0);
  ASSERT_EQ(::pipe(out), 0);
  TableScorer scorer = copier();
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), options());
  std::thread translating([&] {
    LineReader reader(in[0], "pipe");
    ReaderLines lines(reader);
    LineWriter writer("/dev/fd/" + std::to_string(out[1]));
    translate_stream(translator, lines, writer, true);
    writer.commit();
    EXPECT_EQ(lines.bytes(), 14);
  });
  for (const std::string line :
       {"a dog\n", "the fox\n"}) {  // wait for each translation: it must not need the next line
    EXPECT_EQ(::write(in[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    std::string answer(line.size(), '?');
    EXPECT_EQ(::read(out[0], answer.data(), answer.size()), static_cast<ssize_t>(line.size()));
    EXPECT_EQ(answer, line);
  }
  ::close(in[1]);
  translating.join();
  for (const int descriptor : {in[0], out[0], out[1]}) ::close(descriptor);
}

TEST_F(TranslatorTest, AFileIsReadInWindows) {
  const std::string path = testing::TempDir() + "/translator_stream_windows";
  TableScorer scorer = copier();
  BatchTranslatorOptions o = options();
  o.batching.mini_batch = 2;
  o.batching.maxi_batch = 3;
  BatchTranslator translator(scorer, small_vocabulary(), small_vocabulary(), o);
  LineWriter writer(path);
  Portions source({std::deque<std::string>(20, "a dog")});
  EXPECT_EQ(translate_stream(translator, source, writer, false), 20);
  EXPECT_EQ(scorer.begins, 10);
  Portions nothing({});
  EXPECT_EQ(translate_stream(translator, nothing, writer, false), 0);
}

}  // namespace
}  // namespace nmt
