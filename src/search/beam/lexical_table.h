#pragma once

#include "nmt/vocabulary.h"
#include "search/alignment.h"
#include "search/line_writer.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace nmt {

/// Counts which target pieces are aligned to which source pieces, and writes them as a shortlist
/// (search/beam/shortlist.h) with the same contents as scripts/data/make_shortlist.py.
class LexicalTable {
 public:
  /// The vocabularies must outlive the table.
  LexicalTable(const Vocabulary& source, const Vocabulary& target)
      : source_(source), target_(target), frequency_(static_cast<std::size_t>(target.size())) {}

  /// One pair as piece ids, and the links between its pieces.
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
           std::span<const AlignmentPoint> links);
  /// Lines "TARGET NULL FREQUENCY" and, for each source piece, its `keep` most frequent
  /// "TARGET SOURCE PROBABILITY". Returns the number of the latter.
  std::int64_t write(LineWriter& writer, std::size_t keep) const;

 private:
  bool is_piece(const Vocabulary& vocabulary, std::int32_t id) const {
    return id != vocabulary.unk() && id != vocabulary.bos() && id != vocabulary.eos();
  }
  const Vocabulary &source_, &target_;
  std::vector<std::int64_t> frequency_;
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> together_;  // source, target
};

}  // namespace nmt
