#include "search/beam/lexical_table.h"

#include "search/beam/shortlist.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace nmt {
namespace {

using Count = std::pair<std::int64_t, std::string>;  // of a piece

// By descending count, then by piece.
void sort_counts(std::vector<Count>& counts) {
  std::sort(counts.begin(), counts.end(), [](const Count& a, const Count& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
}

}  // namespace

void LexicalTable::add(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
                       std::span<const AlignmentPoint> links) {
  for (const std::int32_t id : target)
    if (is_piece(target_, id)) ++frequency_[static_cast<std::size_t>(id)];
  for (const AlignmentPoint& link : links) {
    const std::int32_t from = source[static_cast<std::size_t>(link.source)],
                       to = target[static_cast<std::size_t>(link.target)];
    if (is_piece(source_, from) && is_piece(target_, to)) ++together_[from][to];
  }
}

std::int64_t LexicalTable::write(LineWriter& writer, std::size_t keep) const {
  std::vector<Count> frequent;
  for (std::size_t id = 0; id < frequency_.size(); ++id)
    if (frequency_[id] > 0)
      frequent.emplace_back(frequency_[id], target_.piece(static_cast<std::int32_t>(id)));
  sort_counts(frequent);
  const auto total =
      static_cast<double>(std::accumulate(frequency_.begin(), frequency_.end(), std::int64_t{0}));
  for (const auto& [count, piece] : frequent)
    writer.write(fmt::format("{} {} {:.8g}\n", piece, shortlist_no_source,
                             static_cast<double>(count) / total));
  std::int64_t written = 0;
  for (const auto& [from, counts] : together_) {
    if (source_.piece(from) == shortlist_no_source) continue;
    std::vector<Count> translations;
    std::int64_t sum = 0;
    for (const auto& [to, count] : counts) {
      translations.emplace_back(count, target_.piece(to));
      sum += count;
    }
    sort_counts(translations);
    if (translations.size() > keep) translations.resize(keep);
    for (const auto& [count, piece] : translations)
      writer.write(fmt::format("{} {} {:.6g}\n", piece, source_.piece(from),
                               static_cast<double>(count) / static_cast<double>(sum)));
    written += std::ssize(translations);
  }
  return written;
}

}  // namespace nmt
