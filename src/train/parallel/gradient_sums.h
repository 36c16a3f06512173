#pragma once

#include "model/trainable.h"
#include "train/parallel/communicator.h"

#include <cstdint>
#include <vector>

namespace nmt::train {

/// Sums the gradients over the ranks, overlapped with the backward pass: gradients that are
/// complete first are summed first. All ranks start the same sums in the same order.
class GradientSums {
 public:
  /// Places the gradients of the parameters in one zeroed tensor, each at a multiple of 64 bytes,
  /// in the order of their completion. All arguments must outlive this object.
  GradientSums(Communicator& ranks, ParameterSet& parameters, const Context& context);

  /// Listener of the last backward pass of an update (Trainable::Listener). Where the device
  /// replays the pass, the sums begin between its graphs.
  void completed(Completed so_far);
  /// Called before gradients are cleared and recomputed because memory ran out: finishes and keeps
  /// the sums already started.
  void keep();
  /// Waits until all gradients are summed over the ranks.
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
  std::int64_t ends_[groups + 1] = {};  // ends of the groups complete with Completed(i)
  int told_ = 0;                        // groups that the listener has heard of in this pass
  int begun_ = 0;                       // groups whose sums have been started
  bool have_met_ = false;               // before the sums of this update
  int kept_groups_ = 0;                 // leading groups held by kept_
  std::vector<float> kept_;
};

}  // namespace nmt::train
