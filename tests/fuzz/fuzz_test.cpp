#include "core/files/file.h"
#include "core/rng.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};
const Target targets[] = {
#define NMT_FUZZ(name) {#name, name},
#include "tests/fuzz/targets.def"
#undef NMT_FUZZ
};

std::vector<std::string> seeds_of(const Target& target) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(NMT_SOURCE_DIR) / "tests/fuzz/seeds" / target.name))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) seeds.push_back(read_file(path.string()));
  return seeds;
}

/// Seconds of mutations per target: NMT_FUZZ_SECONDS, by default 1.
std::chrono::seconds seconds_per_target() {
  const char* text = std::getenv("NMT_FUZZ_SECONDS");
  return std::chrono::seconds(text ? std::max(std::atoi(text), 1) : 1);
}

/// Mutates the input slightly: changes bytes and numbers; removes, duplicates, truncates parts, or
/// inserts parts of another seed.
std::string mutated(std::string text, const std::vector<std::string>& seeds, Rng& rng) {
  static const char* const tokens[] = {"-1",    "0",    "99999999999999999999",
                                       "1e308", "[",    "{",
                                       "]",     "}",    "\"",
                                       ": ",    "\n",   "null",
                                       "auto",  "\xff", "--",
                                       "&a *a", "1.5"};
  for (std::uint64_t changes = 1 + rng.below(4); changes > 0; --changes) {
    const std::size_t at = rng.below(text.size() + 1),
                      length = std::min<std::size_t>(rng.below(16), text.size() - at);
    switch (rng.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << rng.below(8)));
        break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(at, length)); break;
      case 4: text.resize(at); break;
      case 5: text.insert(at, tokens[rng.below(std::size(tokens))]); break;
      default:
        const std::string& other = seeds[rng.below(seeds.size())];
        text.insert(at, other.substr(rng.below(other.size() + 1), rng.below(64)));
    }
  }
  return text;
}

class Fuzz : public testing::TestWithParam<Target> {};

TEST_P(Fuzz, SeedsAndMutations) {
  const std::vector<std::string> seeds = seeds_of(GetParam());
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) GetParam().run(seed);
  GetParam().run("");
  Rng rng(20);
  std::int64_t runs = 0;
  for (const auto end = std::chrono::steady_clock::now() + seconds_per_target();
       std::chrono::steady_clock::now() < end; ++runs) {
    const std::string input = mutated(seeds[rng.below(seeds.size())], seeds, rng);
    try {
      GetParam().run(input);
    } catch (const std::exception& error) {
      FAIL() << error.what() << " for the input\n" << testing::PrintToString(input);
    }
  }
  std::cout << runs << " mutations\n";
  EXPECT_GT(runs, 100);
}

INSTANTIATE_TEST_SUITE_P(Readers, Fuzz, testing::ValuesIn(targets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace nmt::fuzz
