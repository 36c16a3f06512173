#include "nmt/train/shared.h"

#include <cstring>

#include "nmt/kernels/pointwise.h"

namespace nmt::train {

void SharedStore::save(const Checkpoint& checkpoint, bool best) {
  if (communicator_.rank() == 0) store_->save(checkpoint, best);
  communicator_.barrier();
}

std::optional<std::string> SharedStore::newest() {
  std::optional<std::string> found;
  if (communicator_.rank() == 0) found = store_->newest();
  std::uint8_t is_there = found.has_value() ? 1 : 0;
  communicator_.broadcast(&is_there, sizeof is_there);
  if (is_there == 0) return std::nullopt;
  std::string text = found.value_or("");
  broadcast(communicator_, text);
  return text;
}

void SharedStore::load(Checkpoint& into) {
  if (communicator_.rank() == 0) store_->load(into);
  communicator_.barrier();
  spread(communicator_, into);
}

// A result is a few numbers with names; they travel as text, the numbers bit for bit.
ValidationResult SharedValidator::validate(const CopyWeights& weights, const Progress& progress) {
  ValidationResult result;
  if (communicator_.rank() == 0) result = validator_->validate(weights, progress);
  communicator_.barrier();
  auto count = static_cast<std::uint64_t>(result.size());
  communicator_.broadcast(&count, sizeof count);
  result.resize(count);
  for (Metric& metric : result) {
    broadcast(communicator_, metric.name);
    communicator_.broadcast(&metric.value, sizeof metric.value);
    communicator_.broadcast(&metric.higher_is_better, sizeof metric.higher_is_better);
  }
  return result;
}

void SharedValidator::rehearse(const CopyWeights& weights) {
  if (communicator_.rank() == 0) validator_->rehearse(weights);
  communicator_.barrier();
}

void spread(Communicator& communicator, Checkpoint& checkpoint) {
  for (auto* tensors : {&checkpoint.weights, &checkpoint.state})
    for (NamedTensor& t : *tensors) communicator.broadcast(t.tensor.f32(), t.tensor.elements());
}

Tensor join_gradients(ParameterSet& parameters, const Context& context) {
  const auto padded = [](const Parameter& p) { return (p.shape.elements() + 15) / 16 * 16; };
  std::int64_t elements = 0;
  for (const Parameter& p : parameters.all()) elements += padded(p);
  const Tensor all = context.empty({elements});
  dispatch(context, [&](const auto& device) { kernels::fill(device, all.f32(), elements, 0.0f); });
  std::int64_t at = 0;
  for (Parameter& p : parameters.all()) {
    p.gradient = all.slice(at, p.shape.elements()).reshape(p.shape);
    at += padded(p);
  }
  return all;
}

}  // namespace nmt::train
