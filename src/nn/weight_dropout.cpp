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
    tape.gradient(*parameter);  // starts it: the destructor adds to it
    Tensor value = context.empty(parameter->shape), gradient = context.empty(parameter->shape);
    const std::uint64_t stream = tape.next_dropout_stream();
    apply(parameter->value, value, stream);
    dispatch(context, [&](const auto& backend) {
      kernels::fill(backend, gradient.f32(), gradient.elements(), 0.0f);
    });
    dropped_.push_back({parameter, std::exchange(parameter->value, std::move(value)),
                        std::exchange(parameter->gradient, std::move(gradient)), stream});
  }
}

WeightDropout::~WeightDropout() {
  for (Dropped& dropped : dropped_) {
    Parameter& parameter = *dropped.parameter;
    apply(parameter.gradient, parameter.gradient, dropped.stream);
    dispatch(tape_.context(), [&](const auto& backend) {
      kernels::add_scaled(backend, parameter.shape.elements(), 1.0f, parameter.gradient.f32(),
                          dropped.gradient.f32());
    });
    parameter.value = std::move(dropped.value);
    parameter.gradient = std::move(dropped.gradient);
  }
}

void WeightDropout::apply(const Tensor& x, const Tensor& y, std::uint64_t stream) const {
  dispatch(tape_.context(), [&](const auto& backend) {
    kernels::dropout(backend, x.rows(), x.width(), {}, p_, tape_.dropout_key(), stream, x.f32(),
                     y.f32());
  });
}

}  // namespace nmt
