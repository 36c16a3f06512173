#pragma once

#include <span>
#include <vector>

namespace nmt {

/// Edit distance of word sequences, with the beam around the diagonal that Tercom has in sacreBLEU
/// 2. The hypotheses of one object have the same length.
class EditDistance {
 public:
  enum class Op : char { none, keep, substitute, insert, remove };

  /// The reference, as word ids, must outlive the object.
  EditDistance(std::span<const int> reference, std::size_t hypothesis_words);

  /// Insertions, deletions and substitutions of the cheapest path.
  int operator()(std::span<const int> hypothesis);
  /// The operations of the path of the last call, first to last: `insert` adds a reference word,
  /// `remove` drops a hypothesis word.
  std::vector<Op> path() const;

 private:
  struct Cell {
    int cost;
    Op op;
  };
  // Columns [begin, end) of a row are within the beam; their cells begin at `start`.
  struct Row {
    std::size_t begin, end, start;
  };
  // Row 0 inserts; cells outside the beam are unreachable.
  Cell at(std::size_t i, std::size_t j) const;
  void fill_row(std::size_t i, int word);

  std::span<const int> reference_;
  std::size_t words_;
  std::vector<Row> rows_;     // [words_ + 1]
  std::vector<Cell> cells_;   // of rows 1 to words_
  std::vector<int> current_;  // the hypothesis that the rows belong to
};

}  // namespace nmt
