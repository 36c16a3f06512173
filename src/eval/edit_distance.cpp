#include "eval/edit_distance.h"

#include <algorithm>
#include <cmath>

namespace nmt {
namespace {

constexpr int unreachable = 1'000'000'000;
constexpr int usual_beam = 25;  // cells on either side of the diagonal

}  // namespace

EditDistance::EditDistance(std::span<const int> reference, std::size_t hypothesis_words)
    : reference_(reference), words_(hypothesis_words), beam_(usual_beam) {
  const double ratio = words_ == 0 ? 1.0 : static_cast<double>(reference.size()) / words_;
  if (usual_beam < ratio / 2) beam_ = static_cast<int>(std::ceil(ratio / 2 + usual_beam));
  cells_.resize((words_ + 1) * (reference.size() + 1));
  for (std::size_t j = 0; j <= reference.size(); ++j) at(0, j) = {static_cast<int>(j), Op::insert};
}

void EditDistance::fill_row(std::size_t i, int word) {
  const std::size_t columns = reference_.size() + 1;
  for (std::size_t j = 0; j < columns; ++j) at(i, j) = {unreachable, Op::none};
  const double ratio = static_cast<double>(reference_.size()) / static_cast<double>(words_);
  const int diagonal = static_cast<int>(std::floor(static_cast<double>(i) * ratio));
  const auto begin = static_cast<std::size_t>(std::max(0, diagonal - beam_));
  auto end = std::min(columns, static_cast<std::size_t>(diagonal + beam_));
  if (i == words_) end = columns;
  for (std::size_t j = begin; j < end; ++j) {
    if (j == 0) {
      at(i, 0) = {at(i - 1, 0).cost + 1, Op::remove};
      continue;
    }
    const bool same = word == reference_[j - 1];
    Cell best{at(i - 1, j - 1).cost + (same ? 0 : 1), same ? Op::keep : Op::substitute};
    if (const int cost = at(i - 1, j).cost + 1; cost < best.cost) best = {cost, Op::remove};
    if (const int cost = at(i, j - 1).cost + 1; cost < best.cost) best = {cost, Op::insert};
    if (best.cost < unreachable) at(i, j) = best;
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
