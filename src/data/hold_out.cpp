#include "data/hold_out.h"

#include "core/error.h"
#include "core/rng.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace nmt {

namespace {

constexpr std::uint64_t kStream = std::uint64_t{3} << 32;
constexpr Side kSides[] = {Side::source, Side::target};

/// The numbers below n in random order: Fisher-Yates that stores only the swapped entries.
class Draw {
 public:
  Draw(std::int64_t n, Rng rng) : n_(n), rng_(rng) {}
  std::int64_t next() {
    const std::int64_t j =
        i_ + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(n_ - i_)));
    const std::int64_t drawn = at(j);
    moved_[j] = at(i_++);
    return drawn;
  }

 private:
  std::int64_t at(std::int64_t i) const {
    const auto found = moved_.find(i);
    return found == moved_.end() ? i : found->second;
  }
  std::int64_t n_, i_ = 0;
  Rng rng_;
  std::unordered_map<std::int64_t, std::int64_t> moved_;
};

/// Sentences are compared by 64-bit hashes; a collision only excludes one more pair.
std::size_t hash_of(const ParallelCorpus& corpus, Side side, std::int64_t i, std::string& storage) {
  return std::hash<std::string_view>()(corpus.line(side, i, storage));
}

}  // namespace

HoldOut hold_out(const ParallelCorpus& corpus, std::int64_t n, std::uint64_t seed,
                 std::size_t max_bytes) {
  const std::int64_t pairs = corpus.pairs();
  NMT_CHECK(n > 0, "development set: {} pairs to hold out", n);
  const auto leaves_none = [&] {
    fail(ExitStatus::data,
         "{}: holding out {} of {} pairs, with all that have an equal side, leaves none for "
         "training; give a development set with valid-sets",
         corpus.file(Side::source).path(), n, pairs);
  };
  if (n >= pairs) leaves_none();
  std::string storage;
  const auto usable = [&](std::int64_t i) {
    return std::all_of(std::begin(kSides), std::end(kSides), [&](Side side) {
      const std::string_view line = corpus.line(side, i, storage);
      return !is_blank(line) && line.size() <= max_bytes;
    });
  };

  std::vector<std::int64_t> candidates;
  Draw draw(pairs, Rng(seed, kStream));
  for (std::int64_t drawn = 0;
       drawn < pairs && (drawn < 4 * n + 1000 || std::ssize(candidates) < n); ++drawn)
    if (const std::int64_t i = draw.next(); usable(i)) candidates.push_back(i);
  if (std::ssize(candidates) < n) {
    fail(ExitStatus::data,
         "{}: cannot hold out {} of {} pairs as a development set: {} qualify (no blank side, no "
         "side over "
         "{} bytes); give a development set with valid-sets",
         corpus.file(Side::source).path(), n, pairs, candidates.size(), max_bytes);
  }

  // How often each sentence of the candidates occurs in the corpus.
  std::unordered_map<std::size_t, std::int64_t> uses[2];
  for (const Side side : kSides) {
    auto& of_side = uses[static_cast<std::size_t>(side)];
    for (const std::int64_t i : candidates) of_side[hash_of(corpus, side, i, storage)] = 0;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto found = of_side.find(hash_of(corpus, side, i, storage));
      if (found != of_side.end()) ++found->second;
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranked;  // uses of both sides, line
  for (const std::int64_t i : candidates) {
    std::int64_t count = 0;
    for (const Side side : kSides)
      count += uses[static_cast<std::size_t>(side)][hash_of(corpus, side, i, storage)];
    ranked.emplace_back(count, i);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });

  HoldOut held;
  for (std::int64_t k = 0; k < n; ++k)
    held.development.push_back(ranked[static_cast<std::size_t>(k)].second);
  std::sort(held.development.begin(), held.development.end());

  std::unordered_set<std::size_t> taken[2];
  for (const Side side : kSides) {
    for (const std::int64_t i : held.development) {
      taken[static_cast<std::size_t>(side)].insert(hash_of(corpus, side, i, storage));
    }
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const bool shares = std::any_of(std::begin(kSides), std::end(kSides), [&](Side side) {
      return taken[static_cast<std::size_t>(side)].contains(hash_of(corpus, side, i, storage));
    });
    if (shares) held.excluded.push_back(i);
  }
  if (std::ssize(held.excluded) == pairs) leaves_none();
  return held;
}

}  // namespace nmt
