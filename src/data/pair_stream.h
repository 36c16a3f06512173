#pragma once

#include "core/rng.h"
#include "data/batch.h"
#include "data/window.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace nmt {

/// The pairs of a corpus, pass after pass, each pass in an order of its own, encoded. One of
/// several processes encodes its share of them alone and gets all: what each has encoded goes to
/// all others, in pieces. All processes that ask for the same pairs hand over and get the same
/// number of pieces, whatever their speed.
class PairStream {
 public:
  /// How pieces travel. All may throw, to end the reading.
  struct Exchange {
    std::function<void(Ids mine)> send;  ///< hands over this process's share of the next piece
    /// Waits for all processes' shares of the oldest that is under way.
    std::function<std::vector<Ids>()> receive;
    std::function<void()> encoding;  ///< called before every pair that this process encodes
  };
  /// Begins at place `at` of pass number `epoch`'s order of these lines, which outlive the stream,
  /// as does `loading`.
  PairStream(const Loading& loading, const std::vector<std::uint32_t>& lines, const Share& share,
             std::int64_t epoch, std::int64_t at, Exchange exchange);

  EncodedPair next();
  /// Sees to it that so many pairs that next() has not given yet are at hand or under way. For a
  /// process alone: nothing.
  void read_ahead(std::int64_t pairs);

 private:
  std::uint32_t next_line();
  void ask(std::int64_t pairs);
  void receive();

  const Loading& loading_;
  const std::vector<std::uint32_t>& lines_;
  const Share share_;
  const Exchange exchange_;
  std::int64_t epoch_;
  std::size_t at_;
  std::vector<std::uint32_t> order_;              // of pass epoch_
  std::deque<std::vector<std::uint32_t>> asked_;  // lines of the pieces under way
  std::int64_t asked_pairs_ = 0, under_way_ = 0;  // pairs of all pieces so far; of those under way
  std::deque<EncodedPair> ready_;
};

/// Fisher and Yates, as Durstenfeld 1964 has it.
template <class T>
void shuffle(std::vector<T>& things, Rng& rng) {
  for (std::size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[rng.below(i)]);
}

}  // namespace nmt
