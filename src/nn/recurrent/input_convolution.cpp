#include "nn/recurrent/input_convolution.h"

#include "autograd/ops/recurrent.h"

#include <algorithm>

namespace nmt {

InputConvolution::InputConvolution(const Builder& builder, int taps, std::int64_t width) {
  if (taps == 0) return;
  if (taps < 2) fail(ExitStatus::usage, "convolution: {} taps; 0 (none) or at least 2", taps);
  weight_ = &builder.add("convolution", {taps, width}, Builder::Init::zero);
  bias_ = &builder.add("convolution_bias", {width}, Builder::Init::zero);
  std::vector<float> identity(static_cast<std::size_t>(taps * width));
  std::fill_n(identity.begin(), width, 1.0f);
  builder.set(*weight_, identity);
}

InputConvolution::Result InputConvolution::operator()(Tape& tape, const Var& x,
                                                      const std::vector<Var>& initial, int states,
                                                      const Tensor& mask, bool reverse) const {
  if (!weight_) return {x, initial, nullptr};
  Result result{nullptr, initial, nullptr};
  Var before;
  if (static_cast<int>(initial.size()) > states) {
    before = initial.back();
    result.initial.pop_back();
  }
  ops::Convolved out = ops::convolution(tape, x, *weight_, *bias_, before, mask, reverse);
  result.x = std::move(out.y);
  result.last = std::move(out.last);
  return result;
}

std::int64_t InputConvolution::last_floats() const {
  return weight_ ? (weight_->shape[0] - 1) * weight_->shape[1] : 0;
}

}  // namespace nmt
