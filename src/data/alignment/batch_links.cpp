#include "data/alignment/batch_links.h"

#include "core/error.h"

#include <numeric>

namespace nmt {

std::shared_ptr<const BatchExtra> BatchLinks::part(int first, int count, int stride) const {
  std::vector<Ids> some;
  for (int i = 0; i < count; ++i)
    some.push_back(sentences_[static_cast<std::size_t>(first + i * stride)]);
  return std::make_shared<BatchLinks>(std::move(some));
}

LinkedRows linked_rows(const BatchLinks& links, int target_steps, int sentences) {
  const auto width = static_cast<std::size_t>(sentences);
  LinkedRows rows;
  rows.offsets.assign(static_cast<std::size_t>(target_steps) * width + 1, 0);
  const auto each = [&](auto&& use) {
    for (std::size_t b = 0; b < links.sentences().size(); ++b) {
      const Ids& sentence = links.sentences()[b];
      for (std::size_t i = 0; i < sentence.size(); i += 2)
        use(static_cast<std::size_t>(sentence[i + 1]) * width + b, sentence[i]);
    }
  };
  NMT_CHECK(links.sentences().size() <= width, "links of {} sentences in a batch of {}",
            links.sentences().size(), width);
  each([&](std::size_t row, std::int32_t) { ++rows.offsets.at(row + 1); });
  std::partial_sum(rows.offsets.begin(), rows.offsets.end(), rows.offsets.begin());
  rows.sources.resize(static_cast<std::size_t>(rows.offsets.back()));
  std::vector<std::int32_t> next = rows.offsets;
  each([&](std::size_t row, std::int32_t source) {
    rows.sources[static_cast<std::size_t>(next[row]++)] = source;
  });
  return rows;
}

}  // namespace nmt
