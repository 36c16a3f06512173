#include "eval/edit_distance.h"

#include <algorithm>
#include <cmath>

namespace nmt {
namespace {

constexpr int unreachable = 1'000'000'000;
constexpr int usual_beam = 25;  // cells on either side of the diagonal

}  // namespace

EditDistance::EditDistance(std::span<const int> reference, std::size_t hypothesis_words)
    : reference_(reference), words_(hypothesis_words), rows_(words_ + 1) {
  const std::size_t columns = reference.size() + 1;
  const double ratio = words_ == 0 ? 1.0 : static_cast<double>(reference.size()) / words_;
  const int beam =
      usual_beam < ratio / 2 ? static_cast<int>(std::ceil(ratio / 2 + usual_beam)) : usual_beam;
  std::size_t cells = 0;
  for (std::size_t i = 1; i <= words_; ++i) {
    const int diagonal = static_cast<int>(std::floor(static_cast<double>(i) * ratio));
    rows_[i] = {
        static_cast<std::size_t>(std::max(0, diagonal - beam)),
        i == words_ ? columns : std::min(columns, static_cast<std::size_t>(diagonal + beam)),
        cells};
    cells += rows_[i].end - rows_[i].begin;
  }
  cells_.resize(cells);
}

EditDistance::Cell EditDistance::at(std::size_t i, std::size_t j) const {
  if (i == 0) return {static_cast<int>(j), Op::insert};
  const Row& row = rows_[i];
  if (j < row.begin || j >= row.end) return {unreachable, Op::none};
  return cells_[row.start + j - row.begin];
}

void EditDistance::fill_row(std::size_t i, int word) {
  const Row row = rows_[i];
  Cell* const cells = cells_.data() + row.start;
  Cell left{unreachable, Op::none}, above_left = row.begin > 0 ? at(i - 1, row.begin - 1) : left;
  for (std::size_t j = row.begin; j < row.end; ++j) {
    const Cell above = at(i - 1, j);
    Cell best{unreachable, Op::none};
    if (j == 0) {
      best = {above.cost + 1, Op::remove};
    } else {
      const bool same = word == reference_[j - 1];
      best = {above_left.cost + (same ? 0 : 1), same ? Op::keep : Op::substitute};
      if (const int cost = above.cost + 1; cost < best.cost) best = {cost, Op::remove};
      if (const int cost = left.cost + 1; cost < best.cost) best = {cost, Op::insert};
      if (best.cost >= unreachable) best = {unreachable, Op::none};
    }
    cells[j - row.begin] = left = best;
    above_left = above;
  }
}

int EditDistance::operator()(std::span<const int> hypothesis) {
  // Rows of a common beginning stay.
  const auto same =
      std::mismatch(current_.begin(), current_.end(), hypothesis.begin(), hypothesis.end());
  for (auto i = static_cast<std::size_t>(same.first - current_.begin()); i < words_; ++i)
    fill_row(i + 1, hypothesis[i]);
  current_.assign(hypothesis.begin(), hypothesis.end());
  return at(words_, reference_.size()).cost;
}

std::vector<EditDistance::Op> EditDistance::path() const {
  std::vector<Op> ops;
  for (std::size_t i = words_, j = reference_.size(); i > 0 || j > 0;) {
    const Op op = at(i, j).op;
    ops.push_back(op);
    if (op != Op::insert) --i;
    if (op != Op::remove) --j;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

}  // namespace nmt
