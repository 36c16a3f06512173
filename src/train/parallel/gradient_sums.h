#pragma once

#include "model/model.h"
#include "train/parallel/communicator.h"

#include <cstdint>
#include <vector>

namespace nmt::train {

/// The gradients of several ranks, and their sums over the ranks, which begin while the backward
/// pass still runs: those that it completes first are summed first. All ranks begin the same sums
/// in the same order.
class GradientSums {
 public:
  /// Lays the parameters' gradients side by side in one tensor, each at a multiple of 64 bytes, all
  /// zero, in the order in which they are completed. All of them outlive this object.
  GradientSums(Communicator& ranks, ParameterSet& parameters, const Context& context);

  /// To be told of the backward pass that is the last of an update (Model::Listener).
  void completed(Completed so_far);
  /// Before gradients are cleared and computed once more, since memory ran out: sums begun are
  /// finished and kept.
  void keep();
  /// All gradients are now the sums over the ranks.
  void finish();

  /// All gradients, in their order.
  const Tensor& gradients() const { return gradients_; }

 private:
  static constexpr int groups = static_cast<int>(Completed::all);
  Tensor group(int from, int to) const {
    return gradients_.slice(ends_[from], ends_[to] - ends_[from]);
  }
  void begin(int up_to);

  Communicator& ranks_;
  const Context context_;
  Tensor gradients_;
  std::int64_t ends_[groups + 1] = {};  // of those complete with Completed(i)
  int begun_ = 0;                       // groups whose sums have begun
  int kept_groups_ = 0;                 // of them those that kept_ holds
  std::vector<float> kept_;
};

}  // namespace nmt::train
