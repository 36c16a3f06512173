#include "model/directory/partial_output.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "core/error.h"
#include "kernels/softmax_loss.h"

#include <algorithm>

namespace nmt {

PartialOutput::PartialOutput(const Context& context, const Parameter& table, const Parameter& bias,
                             const Candidates& candidates) {
  if (!context.backend->shortlists)
    fail(ExitStatus::usage, "shortlist: is supported on the CPU only");
  // The column of each token; -1: of no sentence.
  std::vector<std::int32_t> column(static_cast<std::size_t>(table.shape[0]), -1);
  for (const auto& each : candidates) {
    NMT_CHECK(!each.empty(), "a sentence without candidates");
    NMT_CHECK(each.front() >= 0 && each.back() < table.shape[0], "candidates {} to {} of {} tokens",
              each.front(), each.back(), table.shape[0]);
    for (const std::int32_t id : each) column[static_cast<std::size_t>(id)] = 0;
    width_ = std::max(width_, static_cast<std::int64_t>(each.size()));
  }
  std::vector<std::int32_t> all;
  for (std::size_t id = 0; id < column.size(); ++id) {
    if (column[id] < 0) continue;
    column[id] = static_cast<std::int32_t>(all.size());
    all.push_back(static_cast<std::int32_t>(id));
  }
  const auto n = static_cast<std::int64_t>(all.size());
  table_.name = table.name;
  table_.shape = {n, table.shape[1]};
  table_.packed =
      ops::select_packed_columns(context, table.shape[1], table.shape[0], all, table.packed);
  bias_.name = bias.name;
  bias_.shape = {n};
  bias_.value = context.empty(bias_.shape);
  for (std::int64_t i = 0; i < n; ++i) bias_.value.f32()[i] = bias.value.f32()[all[i]];
  for (const auto& each : candidates) {
    std::vector<std::int32_t>& columns = columns_.emplace_back();
    columns.reserve(each.size());
    for (const std::int32_t id : each) columns.push_back(column[static_cast<std::size_t>(id)]);
  }
}

Tensor PartialOutput::score(Tape& tape, const Tensor& readouts,
                            std::span<const std::int32_t> sentences, float* normalizer) {
  const Context& context = tape.context();
  const Tensor logits = ops::logits(tape, tape.constant(readouts), table_, &bias_);
  std::vector<std::span<const std::int32_t>> columns;
  for (const std::int32_t sentence : sentences) columns.emplace_back(columns_.at(sentence));
  Tensor picked = context.empty({static_cast<std::int64_t>(sentences.size()), width_});
  kernels::log_sum_exp_of_columns(context.cpu, logits.width(), logits.f32(), columns, width_,
                                  picked.f32(), normalizer);
  return picked;
}

}  // namespace nmt
