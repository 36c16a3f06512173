#include "data/hold_out.h"

#include "core/error.h"
#include "tests/data/temporary_files.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nmt {
namespace {

/// 300 pairs. Sources repeat every 40 lines at first, targets every 30; some sides are blank or
/// long.
struct Corpus {
  Corpus() {
    for (int i = 0; i < 300; ++i) {
      std::string s = fmt::format("s{}", i < 120 ? i % 40 : i),
                  t = fmt::format("t{}", i > 200 ? i % 30 : i);
      if (i == 250) s.assign(1, ' ');
      if (i == 251) s.assign(1000, 'x');
      if (i == 252) t.clear();
      source += s + '\n';
      target += t + '\n';
    }
  }
  std::string source, target;
  TemporaryFiles files;
};

TEST(HoldOut, NothingIsShared) {
  const Corpus text;
  const ParallelCorpus corpus(text.files.write("s", text.source),
                              text.files.write("t", text.target));
  for (const std::int64_t n : {1, 20, 150}) {
    const HoldOut held = hold_out(corpus, n, 7);
    ASSERT_EQ(held.development.size(), static_cast<std::size_t>(n));
    EXPECT_TRUE(std::is_sorted(held.excluded.begin(), held.excluded.end()));
    EXPECT_EQ(std::set(held.development.begin(), held.development.end()).size(),
              static_cast<std::size_t>(n));
    std::string storage;
    for (const Side side : {Side::source, Side::target}) {
      std::set<std::string> sentences;
      for (const auto i : held.development) {
        EXPECT_FALSE(i >= 250 && i <= 252);
        sentences.emplace(corpus.line(side, i, storage));
      }
      for (std::int64_t i = 0; i < corpus.pairs(); ++i) {
        if (!std::binary_search(held.excluded.begin(), held.excluded.end(), i)) {
          EXPECT_FALSE(sentences.contains(std::string(corpus.line(side, i, storage)))) << i;
        }
      }
    }
  }
  // There are more than 20 unique pairs, so only the held-out lines are excluded.
  EXPECT_EQ(hold_out(corpus, 20, 7).excluded.size(), 20u);
  EXPECT_GT(hold_out(corpus, 150, 7).excluded.size(), 150u);
}

TEST(HoldOut, DependsOnTheSeedAlone) {
  const Corpus text;
  const ParallelCorpus corpus(text.files.write("s", text.source),
                              text.files.write("t", text.target));
  EXPECT_EQ(hold_out(corpus, 20, 7).development, hold_out(corpus, 20, 7).development);
  EXPECT_NE(hold_out(corpus, 20, 7).development, hold_out(corpus, 20, 8).development);
}

// Ten usable pairs among many unusable ones; the first draw does not find them all.
TEST(HoldOut, AllUsablePairsAreFound) {
  std::string source, target;
  for (int i = 0; i < 4000; ++i) {
    const bool usable = i % 400 == 7;
    source += usable       ? fmt::format("s{}\n", i)
              : i % 2 == 0 ? "\n"
                           : std::string(700, 'x') + fmt::format("{}\n", i);
    target += fmt::format("t{}\n", i);
  }
  const TemporaryFiles files;
  const ParallelCorpus corpus(files.write("s", source), files.write("t", target));
  EXPECT_EQ(hold_out(corpus, 10, 3).development,
            (std::vector<std::int64_t>{7, 407, 807, 1207, 1607, 2007, 2407, 2807, 3207, 3607}));
  try {
    hold_out(corpus, 11, 3);
    FAIL() << "11 of 10 were held out";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("cannot hold out 11 of 4000 pairs as a development set: 10 qualify (no "
                        "blank side, no side over "
                        "600 bytes)"),
              std::string::npos)
        << error.what();
  }
}

TEST(HoldOut, TooFewPairs) {
  const TemporaryFiles files;
  const ParallelCorpus same(files.write("s", "a\na\na\n"), files.write("t", "b\nc\nd\n"));
  EXPECT_THROW(hold_out(same, 1, 1), Error);
  EXPECT_THROW(hold_out(same, 3, 1), Error);
}

}  // namespace
}  // namespace nmt
