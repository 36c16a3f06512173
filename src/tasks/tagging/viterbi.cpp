#include "tasks/tagging/viterbi.h"

#include <algorithm>

namespace nmt {

std::vector<std::int32_t> best_labels(const LabelScores& scores) {
  std::vector<std::int32_t> labels;
  for (std::int64_t t = 0; t < scores.steps; ++t) {
    const float* const row = scores.values + t * scores.stride;
    labels.push_back(static_cast<std::int32_t>(std::max_element(row, row + scores.labels) - row));
  }
  return labels;
}

std::vector<std::int32_t> best_labels(const LabelScores& scores, const float* transitions) {
  const std::int64_t labels = scores.labels, steps = scores.steps;
  if (steps == 0) return {};
  const auto transition = [&](std::int64_t from, std::int64_t to) {
    return double{transitions[from * labels + to]};
  };
  const auto score = [&](std::int64_t t, std::int64_t j) {
    return double{scores.values[t * scores.stride + j]};
  };
  const auto n = static_cast<std::size_t>(labels);
  std::vector<double> best(n), next(n);  // of all labelings up to t that end with the label
  std::vector<std::int32_t> previous(static_cast<std::size_t>(steps) * n);
  for (std::int64_t j = 0; j < labels; ++j)
    best[static_cast<std::size_t>(j)] = transition(labels, j) + score(0, j);
  for (std::int64_t t = 1; t < steps; ++t) {
    for (std::int64_t j = 0; j < labels; ++j) {
      std::int64_t from = 0;
      for (std::int64_t i = 1; i < labels; ++i)
        if (best[static_cast<std::size_t>(i)] + transition(i, j) >
            best[static_cast<std::size_t>(from)] + transition(from, j))
          from = i;
      next[static_cast<std::size_t>(j)] =
          best[static_cast<std::size_t>(from)] + transition(from, j) + score(t, j);
      previous[static_cast<std::size_t>(t * labels + j)] = static_cast<std::int32_t>(from);
    }
    best.swap(next);
  }
  for (std::int64_t j = 0; j < labels; ++j)
    best[static_cast<std::size_t>(j)] += transition(labels + 1, j);
  std::vector<std::int32_t> path(static_cast<std::size_t>(steps));
  path.back() =
      static_cast<std::int32_t>(std::max_element(best.begin(), best.end()) - best.begin());
  for (std::int64_t t = steps - 1; t > 0; --t)
    path[static_cast<std::size_t>(t - 1)] =
        previous[static_cast<std::size_t>(t * labels + path[static_cast<std::size_t>(t)])];
  return path;
}

}  // namespace nmt
