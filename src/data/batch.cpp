#include "data/batch.h"

#include "core/error.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace nmt {

namespace {

/// Length of the longest sentence, including </s>.
int longest(const std::vector<const Ids*>& sentences) {
  std::size_t steps = 0;
  for (const Ids* ids : sentences) steps = std::max(steps, ids->size() + 1);
  return static_cast<int>(steps);
}

/// `count` sentences of a batch, `stride` apart.
struct Columns {
  int first, count, stride;
};

/// The columns `which` of the first `steps` rows of a matrix with `width` columns.
template <class T>
std::vector<T> columns(const std::vector<T>& from, int steps, int width, const Columns& which) {
  std::vector<T> to;
  to.reserve(static_cast<std::size_t>(steps) * static_cast<std::size_t>(which.count));
  for (std::ptrdiff_t step = 0; step < steps; ++step)
    for (int i = 0; i < which.count; ++i)
      to.push_back(from[static_cast<std::size_t>(step * width + which.first + i * which.stride)]);
  return to;
}

/// Length of the longest of these sentences; adds up their tokens.
int steps_of(const std::vector<float>& mask, int width, const Columns& which,
             std::int64_t& tokens) {
  int steps = 0;
  for (std::size_t row = 0; row * static_cast<std::size_t>(width) < mask.size(); ++row)
    for (int i = 0; i < which.count; ++i) {
      if (mask[row * static_cast<std::size_t>(width) +
               static_cast<std::size_t>(which.first + i * which.stride)] == 0.0f)
        continue;
      steps = static_cast<int>(row) + 1;
      ++tokens;
    }
  return steps;
}

Batch part_of(const Batch& batch, const Columns& which) {
  Batch part;
  part.sentences = which.count;
  part.source_steps = steps_of(batch.source_mask, batch.sentences, which, part.source_tokens);
  part.target_steps = steps_of(batch.target_mask, batch.sentences, which, part.target_tokens);
  part.source = columns(batch.source, part.source_steps, batch.sentences, which);
  part.source_mask = columns(batch.source_mask, part.source_steps, batch.sentences, which);
  part.target_in = columns(batch.target_in, part.target_steps, batch.sentences, which);
  part.target_out = columns(batch.target_out, part.target_steps, batch.sentences, which);
  part.target_mask = columns(batch.target_mask, part.target_steps, batch.sentences, which);
  part.lines = columns(batch.lines, 1, batch.sentences, which);
  part.slice = {batch.slice.first + which.first * batch.slice.stride,
                batch.slice.stride * which.stride, batch.slice.whole};
  part.first_step = batch.first_step;
  if (batch.extra) part.extra = batch.extra->part(which.first, which.count, which.stride);
  return part;
}

}  // namespace

Batch make_batch(const std::vector<const Ids*>& sources, const std::vector<const Ids*>& targets,
                 std::int32_t bos, std::int32_t eos) {
  NMT_CHECK(!sources.empty(), "batch: no sentences given");
  NMT_CHECK(targets.empty() || targets.size() == sources.size(), "batch: {} sources and {} targets",
            sources.size(), targets.size());
  Batch batch;
  const std::size_t sentences = sources.size();
  batch.sentences = batch.slice.whole = static_cast<int>(sentences);
  batch.source_steps = longest(sources);
  batch.target_steps = longest(targets);
  batch.lines.resize(sentences);
  std::iota(batch.lines.begin(), batch.lines.end(), 0);

  const auto source_size = static_cast<std::size_t>(batch.source_steps) * sentences;
  const auto target_size = static_cast<std::size_t>(batch.target_steps) * sentences;
  batch.source.assign(source_size, eos);
  batch.source_mask.assign(source_size, 0.0f);
  batch.target_in.assign(target_size, eos);
  batch.target_out.assign(target_size, eos);
  batch.target_mask.assign(target_size, 0.0f);

  for (std::size_t b = 0; b < sentences; ++b) {
    const Ids& source = *sources[b];
    for (std::size_t s = 0; s <= source.size(); ++s) {
      if (s < source.size()) batch.source[s * sentences + b] = source[s];
      batch.source_mask[s * sentences + b] = 1.0f;
    }
    batch.source_tokens += static_cast<std::int64_t>(source.size()) + 1;
    if (targets.empty()) continue;
    const Ids& target = *targets[b];
    for (std::size_t t = 0; t <= target.size(); ++t) {
      batch.target_in[t * sentences + b] = t == 0 ? bos : target[t - 1];
      if (t < target.size()) batch.target_out[t * sentences + b] = target[t];
      batch.target_mask[t * sentences + b] = 1.0f;
    }
    batch.target_tokens += static_cast<std::int64_t>(target.size()) + 1;
  }
  return batch;
}

Batch slice(const Batch& batch, int first, int count) {
  NMT_CHECK(first >= 0 && count > 0 && first + count <= batch.sentences,
            "batch: sentences {} to {} are out of range, the batch has {}", first, first + count,
            batch.sentences);
  return part_of(batch, {first, count, 1});
}

std::vector<std::int32_t> source_lengths(const Batch& batch) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch.sentences));
  for (std::size_t i = 0; i < batch.source_mask.size(); ++i)
    if (batch.source_mask[i] != 0.0f) ++lengths[i % lengths.size()];
  return lengths;
}

std::vector<int> sizes_of(std::span<const Ids> sentences) {
  std::vector<int> sizes;
  for (const Ids& ids : sentences) sizes.push_back(static_cast<int>(ids.size()));
  return sizes;
}

std::vector<std::vector<std::size_t>> longest_first(std::span<const Ids> sentences,
                                                    std::size_t max_tokens) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sentences.size(); ++i)
    if (!sentences[i].empty()) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sentences[a].size() > sentences[b].size();
  });
  std::vector<std::vector<std::size_t>> batches;
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t count = std::clamp<std::size_t>(max_tokens / sentences[order[begin]].size(),
                                                      1, order.size() - begin);
    batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(begin + count));
    begin += count;
  }
  return batches;
}

Batch take(const Batch& batch, const RankSlice& share) {
  NMT_CHECK(share.rank >= 0 && share.rank < share.size,
            "batch: rank {} is not below the number of processes {}", share.rank, share.size);
  if (share.rank >= batch.sentences) return {};
  Batch part =
      part_of(batch, {share.rank, (batch.sentences - share.rank - 1) / share.size + 1, share.size});
  part.of_shares = {(batch.sentences - 1) / share.size + 1, batch.source_steps, batch.target_steps};
  return part;
}

}  // namespace nmt
