#include "autograd/tape.h"

#include "kernels/pointwise.h"

namespace nmt {

Var Tape::constant(Tensor value) const {
  return std::make_shared<Node>(Node{std::move(value), {}, false});
}
Var Tape::result(Tensor value) const {
  return std::make_shared<Node>(Node{std::move(value), {}, recording_});
}

Tensor Tape::reuse(const Var& x) const {
  if (!recording_ && x.use_count() == 1 && x->value.unique()) return x->value;
  return context_.empty(x->value.shape());
}

void Tape::record(std::function<void()> backward) {
  NMT_CHECK(recording_, "record() on a non-recording tape");
  closures_.push_back(std::move(backward));
}

void Tape::backward() {
  NMT_CHECK(recording_, "backward() on a non-recording tape");
  while (!closures_.empty()) {
    closures_.back()();
    closures_.pop_back();  // releases what the op saved
    if (listener_) listener_(reached_);
  }
}

void Tape::milestone(int number) {
  if (listener_) record([this, number] { reached_ = number; });
}

kernels::ProductInput Tape::input(Node& node) const {
  const Tensor& value = node.value;
  if (!node.rounded) node.rounded = Rounded(context_, value.rows(), value.width(), value.f32());
  return node.rounded.input();
}

kernels::ProductInput Tape::weight(Parameter& parameter) {
  NMT_CHECK(recording_, "weights are rounded for training only");
  const Tensor& value = parameter.value;
  // The value may be another one for this pass (nn/weight_dropout.h).
  if (parameter.rounded.is_of(value.f32())) return parameter.rounded.input();
  parameter.is_rounded_in_passes = true;
  const auto found = weights_.find(value.f32());
  if (found != weights_.end()) return found->second.input();
  return weights_.emplace(value.f32(), Rounded(context_, value.rows(), value.width(), value.f32()))
      .first->second.input();
}

float* Tape::gradient(Node& node) const {
  if (!node.gradient) {
    node.gradient = context_.empty(node.value.shape());
    dispatch(context_, [&](const auto& backend) {
      kernels::fill(backend, node.gradient.f32(), node.gradient.elements(), 0.0f);
    });
  }
  return node.gradient.f32();
}

float* Tape::gradient(Parameter& parameter) {
  float* const values = parameter.gradient.f32();
  if (parameter.gradient_is_old && started_.insert(&parameter).second)
    dispatch(context_, [&](const auto& backend) {
      kernels::fill(backend, values, parameter.gradient.elements(), 0.0f);
    });
  return values;
}

Tape::ProductGradient Tape::product_gradient(Parameter& parameter, std::int64_t rows) {
  parameter.gradient_starts_with_product = true;
  if (rows > 0 && parameter.gradient_is_old && started_.insert(&parameter).second)
    return {parameter.gradient.f32(), 0.0f};
  return {gradient(parameter), 1.0f};
}

void Tape::accumulate(Node& node, Tensor gradient) const {
  if (!node.wants_gradient) return;
  if (!node.gradient) {
    node.gradient = std::move(gradient);
    return;
  }
  dispatch(context_, [&](const auto& backend) {
    kernels::add_scaled(backend, gradient.elements(), 1.0f, gradient.f32(), node.gradient.f32());
  });
}

}  // namespace nmt
