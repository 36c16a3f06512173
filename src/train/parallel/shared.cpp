#include "train/parallel/shared.h"

#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <algorithm>
#include <cmath>
#include <vector>

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
  broadcast(communicator_, into);
}

bool SharedStore::discard_newest() {
  std::uint8_t done = 0;
  if (communicator_.rank() == 0) done = store_->discard_newest() ? 1 : 0;
  communicator_.barrier();
  communicator_.broadcast(&done, sizeof done);
  return done != 0;
}

// Only rank 0 asks for a stop request between batches: the others learn of it here, so that all
// ranks leave alike.
void SharedValidator::run_on_first(const std::function<void()>& work) {
  std::uint8_t interrupted = 0;
  if (communicator_.rank() == 0) {
    try {
      work();
    } catch (const Interrupted&) {
      interrupted = 1;
    }
  }
  communicator_.barrier();
  communicator_.broadcast(&interrupted, sizeof interrupted);
  if (interrupted != 0) throw Interrupted{};
}

// A result is a few numbers with names; they travel as text, the numbers bit for bit.
ValidationResult SharedValidator::validate(const CopyWeights& weights, const Progress& progress) {
  ValidationResult result;
  run_on_first([&] { result = validator_->validate(weights, progress); });
  auto count = static_cast<std::uint64_t>(result.size());
  communicator_.broadcast(&count, sizeof count);
  result.resize(count);
  for (MetricValue& metric : result) {
    broadcast(communicator_, metric.name);
    communicator_.broadcast(&metric.value, sizeof metric.value);
    communicator_.broadcast(&metric.higher_is_better, sizeof metric.higher_is_better);
  }
  return result;
}

void SharedValidator::dry_run(const CopyWeights& weights) {
  run_on_first([&] { validator_->dry_run(weights); });
}

void broadcast(Communicator& communicator, Checkpoint& checkpoint) {
  for (auto* tensors : {&checkpoint.weights, &checkpoint.state})
    for (NamedTensor& t : *tensors)
      communicator.broadcast(static_cast<void*>(t.tensor.f32()),
                             static_cast<std::size_t>(t.tensor.elements()) * sizeof(float));
}

void keep_together(Communicator& communicator, Trainable& model, Checkpoint& checkpoint) {
  std::vector<kernels::OptimizerSlice> slices;  // the norm of "gradients" that are the weights
  for (Parameter& p : model.parameters().all()) {
    kernels::OptimizerSlice& slice = slices.emplace_back();
    slice.n = p.shape.elements();
    slice.gradient = p.value.f32();
  }
  const auto count = static_cast<std::int64_t>(slices.size());
  const Tensor square = model.context().empty({1}, Dtype::f64);
  dispatch(model.context(), [&](const auto& device) {
    kernels::gradient_norm_squared(device, slices.data(), count, square.data<double>());
  });
  const double sum = download<double>(model.context(), square)[0];
  std::vector<double> norms(static_cast<std::size_t>(communicator.size()));
  norms[static_cast<std::size_t>(communicator.rank())] = std::sqrt(sum);
  communicator.all_reduce_sum(norms.data(), std::ssize(norms));
  for (std::size_t r = 1; r < norms.size(); ++r)
    if (!(std::abs(norms[r] - norms[0]) <= 1e-3 * norms[0]))
      NMT_FAIL(
          "ranks have diverged at update {}: the norm of the weights is {} at rank 0 and {} at "
          "rank {}",
          checkpoint.update, norms[0], norms[r], r);
  if (std::any_of(norms.begin(), norms.end(), [&](double norm) { return norm != norms[0]; }))
    broadcast(communicator, checkpoint);
}

}  // namespace nmt::train
