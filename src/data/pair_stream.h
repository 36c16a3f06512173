#pragma once

#include "data/batch.h"
#include "data/pair_loader.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace nmt {

/// The encoded pairs of a corpus, epoch after epoch, in a new order for each epoch. With several
/// processes, each encodes only its share and receives the others' in pieces. Processes that
/// request the same pairs send and receive the same number of pieces, independently of their speed.
class PairStream {
 public:
  /// How pieces are exchanged. All functions may throw to stop the stream.
  struct Exchange {
    std::function<void(Ids mine)> send;  ///< sends this process's share of the next piece
    /// Waits for the shares of all processes of the oldest piece in flight.
    std::function<std::vector<Ids>()> receive;
    std::function<void()> encoding;  ///< called before every pair that this process encodes
  };
  /// Starts at index `at` of the order of epoch `epoch`. `loader` and `lines` must outlive the
  /// stream.
  PairStream(const PairLoader& loader, const std::vector<std::uint32_t>& lines,
             const RankSlice& share, std::int64_t epoch, std::int64_t at, Exchange exchange);

  EncodedPair next();
  /// Prefetches: requests pieces until this many pairs beyond those returned by next() are ready or
  /// in flight. No effect with a single process.
  void read_ahead(std::int64_t pairs);

 private:
  std::uint32_t next_line();
  void ask(std::int64_t pairs);
  void receive();

  const PairLoader& loader_;
  const std::vector<std::uint32_t>& lines_;
  const RankSlice share_;
  const Exchange exchange_;
  std::int64_t epoch_;
  std::size_t at_;
  std::vector<std::uint32_t> order_;              // of epoch epoch_
  std::deque<std::vector<std::uint32_t>> asked_;  // lines of the pieces in flight
  std::int64_t asked_pairs_ = 0, under_way_ = 0;  // pairs of all pieces so far; pairs in flight
  std::deque<EncodedPair> ready_;
};

}  // namespace nmt
