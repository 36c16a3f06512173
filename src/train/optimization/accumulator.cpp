#include "train/optimization/accumulator.h"

#include "core/error.h"

#include <new>
#include <utility>

namespace nmt::train {
namespace {

std::int64_t padded_tokens(const Batch& batch) {
  return static_cast<std::int64_t>(batch.sentences) * (batch.source_steps + batch.target_steps);
}

// What a device's memory says of itself.
std::string details(const std::bad_alloc& error) {
  const auto* device = dynamic_cast<const OutOfMemory*>(&error);
  return device ? fmt::format(" ({})", device->what()) : "";
}

}  // namespace

void Accumulator::cut(std::vector<Piece>& pieces, std::size_t at) {
  Piece& whole = pieces[at];
  const int half = (whole.batch.sentences + 1) / 2;
  Piece first{slice(whole.batch, 0, half), whole.pass},
      second{slice(whole.batch, half, whole.batch.sentences - half), whole.pass};
  whole = std::move(first);
  pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(second));
}

std::int64_t Accumulator::add(std::vector<Piece> pieces, const Trainable::Listener& listener) {
  std::int64_t tokens = 0;
  model_.begin_update();
  std::erase_if(pieces, [](const Piece& piece) { return piece.batch.sentences == 0; });
  for (std::size_t at = 0; at < pieces.size();) {
    const Batch& batch = pieces[at].batch;
    if (batch.sentences > 1 && padded_tokens(batch) > max_tokens_) {
      cut(pieces, at);
      continue;
    }
    try {
      const bool is_last = at + 1 == pieces.size();
      model_.accumulate_gradients(batch, pieces[at].pass, losses_,
                                  is_last ? listener : Trainable::Listener());
      tokens += batch.target_tokens;
      ++at;
      continue;
    } catch (const std::bad_alloc& error) {
      if (batch.sentences == 1)
        fail(ExitStatus::memory, "out of memory in {}; lower {}{}",
             batch.source_steps == 0
                 ? fmt::format("a single stream of {} steps", batch.target_steps)
                 : fmt::format("a single pair of {} source and {} target steps", batch.source_steps,
                               batch.target_steps),
             batch.source_steps == 0 ? "bptt" : "max-length", details(error));
    }
    if (!std::exchange(has_split_, true)) on_split_(batch);
    cut(pieces, at);
    max_tokens_ = padded_tokens(pieces[at].batch);
    clear_();
    model_.restart_update();
    tokens = 0;
    at = 0;
  }
  if (pieces.empty()) clear_();  // no pass has overwritten the gradients of the last update
  return tokens;
}

}  // namespace nmt::train
