#include "tasks/language_model/token_stream.h"

#include "core/error.h"

#include <algorithm>
#include <charconv>

namespace nmt {

TokenStream::TokenStream(const TextFile& text, std::int64_t lines, const Vocabulary& vocabulary,
                         int streams, int steps)
    : ids_{vocabulary.eos()}, streams_(streams), steps_(steps) {
  std::string storage;
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::string_view line = text.line(i, storage);
    const Ids ids = vocabulary.encode(line);
    if (ids.empty()) {
      ++blank_;
      continue;
    }
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ids_.push_back(vocabulary.eos());
    ++sentences_;
  }
  length_ = tokens() / streams_;
  if (length_ == 0)
    fail(ExitStatus::data, "{}: {} tokens are fewer than the {} streams of a batch (mini-batch)",
         text.path(), tokens(), streams_);
}

Batch TokenStream::window(std::int64_t first) const {
  const std::int64_t steps = std::min(steps_, length_ - first);
  Batch batch;
  batch.sentences = batch.slice.whole = static_cast<int>(streams_);
  batch.target_steps = static_cast<int>(steps);
  batch.target_tokens = steps * streams_;
  batch.first_step = first;
  const auto size = static_cast<std::size_t>(batch.target_tokens);
  batch.target_mask.assign(size, 1.0f);
  batch.lines.assign(static_cast<std::size_t>(streams_), 0);
  batch.target_in.reserve(size);
  batch.target_out.reserve(size);
  for (std::int64_t t = first; t < first + steps; ++t)
    for (std::int64_t b = 0; b < streams_; ++b) {
      const auto at = static_cast<std::size_t>(b * length_ + t);
      batch.target_in.push_back(ids_[at]);
      batch.target_out.push_back(ids_[at + 1]);
    }
  return batch;
}

const Batch& TokenStream::next() {
  batch_ = window(window_ * steps_);
  if (++window_ == windows()) {
    window_ = 0;
    ++epoch_;
  }
  return batch_;
}

double TokenStream::epochs() const {
  return static_cast<double>(epoch_) +
         static_cast<double>(window_) / static_cast<double>(windows());
}

std::string TokenStream::position() const {
  return fmt::format("epoch {} window {}", epoch_, window_);
}

void TokenStream::restore(const std::string& position) {
  constexpr std::string_view names[] = {"epoch ", " window "};
  std::int64_t numbers[] = {-1, -1};
  const char* at = position.data();
  const char* const end = at + position.size();
  for (int i = 0; i < 2; ++i) {
    if (!std::string_view(at, end).starts_with(names[i])) break;
    at = std::from_chars(at + names[i].size(), end, numbers[i]).ptr;
  }
  if (at != end || numbers[0] < 0 || numbers[1] < 0 || numbers[1] >= windows())
    fail(ExitStatus::data,
         "invalid corpus position '{}' in state.json; expected 'epoch N window M', M below {}",
         position, windows());
  epoch_ = numbers[0];
  window_ = numbers[1];
}

std::vector<Batch> TokenStream::largest() {
  return {window(0)};
}

}  // namespace nmt
