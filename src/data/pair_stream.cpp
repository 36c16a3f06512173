#include "data/pair_stream.h"

#include "core/error.h"
#include "core/rng.h"

#include <algorithm>
#include <utility>

namespace nmt {

namespace {

constexpr std::int64_t kPiece = 1024;  // pairs to request when none is ready
// Random number streams: one per epoch for its order.
constexpr std::uint64_t kOrderStream = std::uint64_t{1} << 32;

// Serialization of a pair: the lengths of both sides; for each side, and for the links, the number
// of its ids, and these.
void append(Ids& piece, const EncodedPair& pair) {
  piece.push_back(pair.source_length);
  piece.push_back(pair.target_length);
  for (const Ids* ids : {&pair.source, &pair.target, &pair.links}) {
    piece.push_back(static_cast<std::int32_t>(ids->size()));
    piece.insert(piece.end(), ids->begin(), ids->end());
  }
}

}  // namespace

PairStream::PairStream(const PairLoader& loader, const std::vector<std::uint32_t>& lines,
                       const RankSlice& share, std::int64_t epoch, std::int64_t at,
                       Exchange exchange)
    : loader_(loader),
      lines_(lines),
      share_(share),
      exchange_(std::move(exchange)),
      epoch_(epoch - 1),
      at_(lines.size()) {
  for (std::int64_t i = 0; i < at; ++i) next_line();
}

std::uint32_t PairStream::next_line() {
  if (at_ == lines_.size()) {
    order_ = lines_;
    Rng rng(loader_.spec.seed, kOrderStream + static_cast<std::uint64_t>(++epoch_));
    shuffle(order_, rng);
    at_ = 0;
  }
  return order_[at_++];
}

EncodedPair PairStream::next() {
  if (share_.size == 1) {
    exchange_.encoding();
    const std::uint32_t line = next_line();  // before epoch_ is read
    return loader_.encode(line, epoch_);
  }
  while (ready_.empty()) {
    if (asked_.empty()) ask(std::min(kPiece, static_cast<std::int64_t>(lines_.size())));
    receive();
  }
  EncodedPair pair = std::move(ready_.front());
  ready_.pop_front();
  return pair;
}

void PairStream::read_ahead(std::int64_t pairs) {
  const std::int64_t missing = pairs - std::ssize(ready_) - under_way_;
  if (share_.size > 1 && missing > 0) ask(missing);
}

void PairStream::ask(std::int64_t pairs) {
  std::vector<std::uint32_t> lines;
  Ids mine;
  for (std::int64_t i = 0; i < pairs; ++i) {
    lines.push_back(next_line());
    if (asked_pairs_++ % share_.size != share_.rank) continue;
    exchange_.encoding();
    append(mine, loader_.encode(lines.back(), epoch_));
  }
  under_way_ += pairs;
  asked_.push_back(std::move(lines));
  exchange_.send(std::move(mine));
}

void PairStream::receive() {
  const std::vector<Ids> pieces = exchange_.receive();
  NMT_CHECK(std::ssize(pieces) == share_.size,
            "training data: received pieces of {} processes, expected {}", pieces.size(),
            share_.size);
  std::vector<std::size_t> at(pieces.size());
  auto from = static_cast<std::size_t>((asked_pairs_ - under_way_) % share_.size);
  const auto take = [&](std::size_t count) {
    const std::size_t begin = at[from];
    NMT_CHECK(begin + count <= pieces[from].size(),
              "training data: the piece of process {} is truncated", from);
    at[from] += count;
    return pieces[from].begin() + static_cast<std::ptrdiff_t>(begin);
  };
  for (const std::uint32_t line : asked_.front()) {
    EncodedPair& pair = ready_.emplace_back();
    pair.line = line;
    pair.source_length = *take(1);
    pair.target_length = *take(1);
    for (Ids* ids : {&pair.source, &pair.target, &pair.links}) {
      const auto count = static_cast<std::size_t>(*take(1));
      const auto begin = take(count);
      ids->assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    from = (from + 1) % pieces.size();
  }
  under_way_ -= std::ssize(asked_.front());
  asked_.pop_front();
}

}  // namespace nmt
