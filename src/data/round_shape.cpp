#include "data/round_shape.h"

#include <algorithm>

namespace nmt {
namespace {

// A matrix [steps,width] in the corner of a larger one.
template <class T>
std::vector<T> widened(const std::vector<T>& from, int width, int to_steps, int to_width, T fill) {
  std::vector<T> to(static_cast<std::size_t>(to_steps) * static_cast<std::size_t>(to_width), fill);
  auto out = to.begin();
  for (auto row = from.begin(); row != from.end(); row += width, out += to_width)
    std::copy(row, row + width, out);
  return to;
}

}  // namespace

int round_length(int n, int largest) {
  int multiple = 1;
  while (2 * multiple <= largest &&
         (n + 2 * multiple - 1) / (2 * multiple) * 2 * multiple - n <= n / 8)
    multiple *= 2;
  return (n + multiple - 1) / multiple * multiple;
}

std::int64_t round_tokens(std::int64_t tokens, std::int64_t padded) {
  const std::int64_t part = std::max<std::int64_t>((padded + 7) / 8, 1);
  return std::min(padded, (tokens + part - 1) / part * part);
}

Batch in_round_shape(const Batch& batch) {
  Batch out = batch;
  const int b = batch.sentences;
  const BatchShape& shares = batch.of_shares;
  out.sentences = round_length(std::max(b, shares.sentences), 8);
  out.source_steps = round_length(std::max(batch.source_steps, shares.source_steps), 8);
  out.target_steps = round_length(std::max(batch.target_steps, shares.target_steps), 4);
  if (out.sentences == b && out.source_steps == batch.source_steps &&
      out.target_steps == batch.target_steps)
    return out;
  const std::int32_t eos = batch.source.back();  // </s> ends the longest sentence, or pads
  const auto source = [&](const auto& from, auto fill) {
    return widened(from, b, out.source_steps, out.sentences, fill);
  };
  const auto target = [&](const auto& from, auto fill) {
    return widened(from, b, out.target_steps, out.sentences, fill);
  };
  out.source = source(batch.source, eos);
  out.source_mask = source(batch.source_mask, 0.0f);
  std::fill(out.source_mask.begin() + b, out.source_mask.begin() + out.sentences, 1.0f);
  out.target_in = target(batch.target_in, eos);
  out.target_out = target(batch.target_out, eos);
  out.target_mask = target(batch.target_mask, 0.0f);
  out.lines.resize(static_cast<std::size_t>(out.sentences), 0);
  return out;
}

}  // namespace nmt
