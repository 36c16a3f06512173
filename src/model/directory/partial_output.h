#pragma once

#include "autograd/ops.h"
#include "model/step_scorer.h"

#include <span>
#include <vector>

namespace nmt {

/// The output layer over the candidates of a batch: one product for all that any sentence has, of
/// which each row keeps its own sentence's. So a row's scores do not depend on the others'. On the
/// CPU alone.
class PartialOutput {
 public:
  /// `table` [V,E] is packed. Error (usage): another device.
  PartialOutput(const Context& context, const Parameter& table, const Parameter& bias,
                const Candidates& candidates);
  /// Scores [rows, longest list] of readouts [rows,E] of these sentences; their normalizers go to
  /// `normalizer`.
  Tensor score(Tape& tape, const Tensor& readouts, std::span<const std::int32_t> sentences,
               float* normalizer);

 private:
  Parameter table_, bias_;
  std::vector<std::vector<std::int32_t>>
      columns_;  // of each sentence: where its candidates stand in table_
  std::int64_t width_ = 0;
};

}  // namespace nmt
