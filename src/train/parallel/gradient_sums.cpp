#include "train/parallel/gradient_sums.h"

#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <span>

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

void GradientSums::begin(int up_to) {
  for (; begun_ < up_to; ++begun_) {
    const Tensor values = group(begun_, begun_ + 1);
    ranks_.begin_sum(values.f32(), values.elements());
  }
}

void GradientSums::completed(Completed so_far) {
  begin(static_cast<int>(so_far));
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

// Where the last group's sum begins all ranks meet, mostly asleep.
void GradientSums::finish() {
  begin(groups - 1);
  const Tensor last = group(groups - 1, groups);
  ranks_.all_reduce_sum(last.f32(), last.elements());
  ranks_.finish_sums();
  if (kept_groups_ > 0) upload(context_, std::span<const float>(kept_), group(0, kept_groups_));
  kept_.clear();
  begun_ = kept_groups_ = 0;
}

}  // namespace nmt::train
