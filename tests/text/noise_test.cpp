#include "text/noise.h"

#include "text/unicode.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr NoiseSpec off{0, 0, 0, 0};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Optimal string alignment distance: insertions, deletions, replacements, swaps of neighbors.
int distance(const std::u32string& a, const std::u32string& b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

TEST(Noise, OffChangesNothing) {
  for (const NoiseSpec& rates : {NoiseSpec{}, off}) {
    const TextNoise noise(rates, 1);
    EXPECT_FALSE(noise.any());
    for (int line = 0; line < 100; ++line) {
      std::string source = "A small dog.", target = "Ein kleiner Hund.";
      EXPECT_FALSE(noise.apply(source, target, 0, line));
      EXPECT_EQ(source + target, "A small dog.Ein kleiner Hund.");
    }
  }
}

TEST(Noise, ChangesBothSidesAlike) {
  std::string source = "a big dog runs.", target = "ein großer Hund läuft!";
  EXPECT_TRUE(TextNoise({1, 0, 0, 0}, 1).apply(source, target, 3, 5));
  EXPECT_EQ(source, "A BIG DOG RUNS.");
  EXPECT_EQ(target, "EIN GROSSER HUND LÄUFT!");
  source = "a big dog runs.", target = "ein großer Hund läuft!";
  EXPECT_TRUE(TextNoise({0, 1, 0, 0}, 1).apply(source, target, 3, 5));
  EXPECT_EQ(source, "A Big Dog Runs.");
  EXPECT_EQ(target, "Ein Großer Hund Läuft!");
  source = "a big dog runs. ", target = "ein großer Hund läuft?!";
  EXPECT_TRUE(TextNoise({0, 0, 0, 1}, 1).apply(source, target, 3, 5));
  EXPECT_EQ(source, "a big dog runs");
  EXPECT_EQ(target, "ein großer Hund läuft");
}

TEST(Noise, KeepsPunctuationThatOneSideLacks) {
  for (auto [source, target] : {std::pair<std::string, std::string>{"a dog", "ein Hund."},
                                {"a dog.", "ein Hund"},
                                {"...", "Hund."},
                                {"", "."},
                                {"a dog,", "ein Hund."}}) {
    const std::string before = source + target;
    EXPECT_FALSE(TextNoise({0, 0, 0, 1}, 1).apply(source, target, 0, 0));
    EXPECT_EQ(source + target, before);
  }
  EXPECT_EQ(without_final_punctuation(U"我们走。"), U"我们走");
}

// Counts over 20,000 lines against the binomial distribution, 5 standard deviations.
TEST(Noise, DrawsAtItsRates) {
  const NoiseSpec rates{0.07, 0.05, 0.06, 0.2};
  const int lines = 20000;
  int upper = 0, title = 0, typos = 0, bare = 0;
  for (int line = 0; line < lines; ++line) {
    std::string source = "a dog runs over the grass.", target = "ein Hund läuft.";
    TextNoise(rates, 17).apply(source, target, 2, line);
    const bool is_upper = target.starts_with("EIN"), is_title = target.starts_with("Ein");
    upper += is_upper;
    title += is_title;
    bare += target.back() != '.';
    EXPECT_EQ(source.back() != '.', target.back() != '.');
    std::string clean = is_upper   ? "A DOG RUNS OVER THE GRASS"
                        : is_title ? "A Dog Runs Over The Grass"
                                   : "a dog runs over the grass";
    if (target.back() == '.') clean += '.';
    typos += source != clean;
  }
  const auto expect = [&](int count, double rate) {
    EXPECT_NEAR(count, lines * rate, 5 * std::sqrt(lines * rate * (1 - rate)));
  };
  expect(upper, rates.upper);
  expect(title, rates.title);
  expect(bare, rates.punctuation);
  // A swap or a doubled letter can restore no line of this text, so each draw shows.
  expect(typos, rates.typos);
}

TEST(Noise, ATypoIsOneEdit) {
  const std::string clean = "Der Bäcker (Müller) is at 12:30 on the x-axis \"großartig\", oder";
  const std::vector<std::string> before = words_of(clean);
  const std::vector<std::size_t> changeable = {0, 1, 2, 7,
                                               9, 10};  // at least 3 letters, no digits or hyphens
  std::vector<int> counts(before.size());
  int none = 0;
  const int lines = 4000;
  for (int line = 0; line < lines; ++line) {
    std::u32string text = decode_utf8(clean);
    Rng rng(5, static_cast<std::uint64_t>(line));
    ASSERT_TRUE(add_typos(text, rng));
    const std::vector<std::string> after = words_of(encode_utf8(text));
    ASSERT_EQ(after.size(), before.size()) << encode_utf8(text);
    int changed = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (after[i] == before[i]) continue;
      ++changed;
      ++counts[i];
      EXPECT_EQ(distance(decode_utf8(before[i]), decode_utf8(after[i])), 1) << after[i];
    }
    none += changed == 0;
  }
  EXPECT_EQ(none, 0);
  // One of six words for certain, each other one with probability 0.1.
  const double share = 1.0 / 6 + 5.0 / 6 * 0.1;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool can = std::find(changeable.begin(), changeable.end(), i) != changeable.end();
    EXPECT_NEAR(counts[i], can ? lines * share : 0,
                can ? 5 * std::sqrt(lines * share * (1 - share)) : 0)
        << before[i];
  }
}

TEST(Noise, TyposOfAMillionWordsAreQuick) {
  std::u32string text;
  for (int i = 0; i < 1'000'000; ++i) text += U"words ";
  Rng rng(1);
  const std::clock_t start = std::clock();  // CPU time, which other processes do not affect
  EXPECT_TRUE(add_typos(text, rng));
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
  EXPECT_NEAR(static_cast<double>(text.size()), 6e6, 1e5);
}

TEST(Noise, LinesWithoutWordsHaveNoTypo) {
  for (const char32_t* line : {U"", U"a an 12 abc1 x-y ...", U"  "}) {
    std::u32string text = line;
    Rng rng(1);
    EXPECT_FALSE(add_typos(text, rng));
    EXPECT_EQ(text, line);
  }
  std::u32string greek = U"λόγος";  // not on the keyboard
  for (int i = 0; i < 100; ++i) {
    std::u32string text = greek;
    Rng rng(1, static_cast<std::uint64_t>(i));
    add_typos(text, rng);
    EXPECT_EQ(distance(greek, text), 1);
  }
}

TEST(Noise, DependsOnSeedEpochAndLineOnly) {
  const NoiseSpec rates{0.3, 0.3, 0.5, 0.5};
  const auto made = [&](std::uint64_t seed, int epoch, int first) {
    std::string all;
    for (int line = first; line < first + 50; ++line) {
      std::string source = "a dog runs over the green grass.", target = "ein Hund läuft.";
      TextNoise(rates, seed).apply(source, target, epoch, line);
      all += source + '|' + target + '\n';
    }
    return all;
  };
  EXPECT_EQ(made(1, 0, 0), made(1, 0, 0));
  EXPECT_NE(made(1, 0, 0), made(2, 0, 0));
  EXPECT_NE(made(1, 0, 0), made(1, 1, 0));
  EXPECT_NE(made(1, 0, 0), made(1, 0, 50));
}

TEST(Noise, OneSideHasTheCaseOfItsPair) {
  const TextNoise noise({0.4, 0.4, 0.5, 0.5}, 9);
  for (int line = 0; line < 200; ++line) {
    std::string source = "ab", target = "a dog runs", alone = target;
    noise.apply(source, target, 4, line);
    noise.apply_case(alone, 4, line);
    EXPECT_EQ(alone, target);
  }
}

}  // namespace
}  // namespace nmt
