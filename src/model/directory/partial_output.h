#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "model/step_scorer.h"

#include <span>
#include <vector>

namespace nmt {

/// The output layer over the candidates of a batch: one matmul for the union of all candidates,
/// from which each row takes those of its own sentence. A row's scores do not depend on the other
/// rows. CPU only.
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
  // Per sentence: columns of its candidates in table_.
  std::vector<std::vector<std::int32_t>> columns_;
  std::int64_t width_ = 0;
};

}  // namespace nmt
