#include "nmt/data/batch.h"

#include "nmt/core/error.h"

#include <algorithm>
#include <numeric>

namespace nmt {

namespace {

/// Longest of the sentences with its </s>.
int longest(const std::vector<const Ids*>& sentences) {
  std::size_t steps = 0;
  for (const Ids* ids : sentences) steps = std::max(steps, ids->size() + 1);
  return static_cast<int>(steps);
}

}  // namespace

Batch make_batch(const std::vector<const Ids*>& sources, const std::vector<const Ids*>& targets, std::int32_t bos,
                 std::int32_t eos) {
  NMT_CHECK(!sources.empty(), "batch: no sentence");
  NMT_CHECK(targets.empty() || targets.size() == sources.size(), "batch: {} sources and {} targets", sources.size(),
            targets.size());
  Batch batch;
  const std::size_t sentences = sources.size();
  batch.sentences = static_cast<int>(sentences);
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

}  // namespace nmt
