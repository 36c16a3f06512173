#include "train/parallel/gradient_sums.h"

#include "kernels/pointwise.h"
#include "tensor/copy.h"
#include "tensor/repeat.h"

#include <span>
#include <utility>

namespace nmt::train {

GradientSums::GradientSums(Communicator& ranks, ParameterSet& parameters, const Context& context)
    : ranks_(ranks), context_(context) {
  const auto padded = [](const Parameter& p) { return (p.shape.elements() + 15) / 16 * 16; };
  for (int i = 1; i <= groups; ++i) {
    ends_[i] = ends_[i - 1];
    for (const Parameter& p : parameters.all())
      if (static_cast<int>(completed_with(p)) == i) ends_[i] += padded(p);
  }
  gradients_ = context.empty({ends_[groups]});
  dispatch(context, [&](const auto& device) {
    kernels::fill(device, gradients_.f32(), gradients_.elements(), 0.0f);
  });
  for (int i = 1; i <= groups; ++i) {
    std::int64_t at = ends_[i - 1];
    for (Parameter& p : parameters.all()) {
      if (static_cast<int>(completed_with(p)) != i) continue;
      p.gradient = gradients_.slice(at, p.shape.elements()).reshape(p.shape);
      at += padded(p);
    }
  }
}

// The groups, their order and their sizes follow from the parameters alone: a rank that replays its
// pass, one that runs it call by call, one that runs it again in parts and one that has no
// sentences begin the same sums in the same order.
void GradientSums::begin(int up_to) {
  if (begun_ < up_to && !std::exchange(have_met_, true)) ranks_.meet_before_sums();
  for (; begun_ < up_to; ++begun_) {
    const Tensor values = group(begun_, begun_ + 1);
    ranks_.begin_sum(values.f32(), values.elements());
  }
}

// A pass that is replayed runs a second time where its calls differ from the graphs, and then tells
// the same again. The sums begin when the pass runs on the device.
void GradientSums::completed(Completed so_far) {
  const int up_to = static_cast<int>(so_far);
  if (up_to > told_) between_graphs(context_, {up_to}, [this, up_to] { begin(up_to); });
  told_ = up_to;
  ranks_.advance_sums();
}

void GradientSums::keep() {
  ranks_.finish_sums();
  if (begun_ == kept_groups_) return;
  const std::vector<float> sums = download<float>(
      context_, group(kept_groups_, begun_));  // on the host, since the device has no memory left
  kept_.insert(kept_.end(), sums.begin(), sums.end());
  kept_groups_ = begun_;
}

// Where the last group's sum begins, ranks without GPUs meet, mostly asleep.
void GradientSums::finish() {
  begin(groups - 1);
  have_met_ = false;
  const Tensor last = group(groups - 1, groups);
  ranks_.all_reduce_sum(last.f32(), last.elements());
  ranks_.finish_sums();
  if (kept_groups_ > 0) upload(context_, std::span<const float>(kept_), group(0, kept_groups_));
  kept_.clear();
  begun_ = kept_groups_ = told_ = 0;
}

}  // namespace nmt::train
