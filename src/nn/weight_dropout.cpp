#include "nn/weight_dropout.h"

#include "kernels/pointwise.h"

#include <utility>

namespace nmt {

WeightDropout::WeightDropout(Tape& tape, const std::vector<Parameter*>& parameters, float p)
    : tape_(tape), p_(p) {
  if (p <= 0.0f || !tape.recording()) return;
  const Context& context = tape.context();
  dropped_.reserve(parameters.size());
  for (Parameter* parameter : parameters) {
    tape.gradient(*parameter);  // starts it: add_gradients() adds to it
    Tensor value = context.empty(parameter->shape), gradient = context.empty(parameter->shape);
    const std::uint64_t stream = tape.next_dropout_stream();
    apply(parameter->value, value, stream);
    dispatch(context, [&](const auto& backend) {
      kernels::fill(backend, gradient.f32(), gradient.elements(), 0.0f);
    });
    dropped_.push_back({parameter, std::move(value), std::move(gradient), stream});
  }
  exchange();  // after the last allocation, which may fail
}

WeightDropout::~WeightDropout() {
  exchange();
}

void WeightDropout::add_gradients() {
  for (const Dropped& dropped : dropped_) {
    const Tensor& gradient = dropped.parameter->gradient;
    apply(gradient, gradient, dropped.stream);
    dispatch(tape_.context(), [&](const auto& backend) {
      kernels::add_scaled(backend, gradient.elements(), 1.0f, gradient.f32(),
                          dropped.gradient.f32());
    });
  }
}

void WeightDropout::exchange() noexcept {
  for (Dropped& dropped : dropped_) {
    std::swap(dropped.parameter->value, dropped.value);
    std::swap(dropped.parameter->gradient, dropped.gradient);
  }
}

void WeightDropout::apply(const Tensor& x, const Tensor& y, std::uint64_t stream) const {
  dispatch(tape_.context(), [&](const auto& backend) {
    kernels::dropout(backend, x.rows(), x.width(), {}, p_, tape_.dropout_key(), stream, x.f32(),
                     y.f32());
  });
}

}  // namespace nmt
