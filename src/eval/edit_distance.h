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
  Cell& at(std::size_t i, std::size_t j) { return cells_[i * (reference_.size() + 1) + j]; }
  const Cell& at(std::size_t i, std::size_t j) const {
    return cells_[i * (reference_.size() + 1) + j];
  }
  void fill_row(std::size_t i, int word);

  std::span<const int> reference_;
  std::size_t words_;
  int beam_;
  std::vector<Cell> cells_;   // [words_ + 1, reference + 1]
  std::vector<int> current_;  // the hypothesis that the rows belong to
};

}  // namespace nmt
