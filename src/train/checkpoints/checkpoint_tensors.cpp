#include "train/checkpoints/checkpoint_tensors.h"

#include "core/error.h"
#include "tensor/copy.h"

#include <span>
#include <string>
#include <vector>

namespace nmt::train {

Checkpoint CheckpointTensors::allocate(Arena& host, std::int64_t update, bool with_batches) {
  Checkpoint checkpoint;
  checkpoint.update = update;
  const auto into = [&](std::vector<NamedTensor>& list) {
    return [&](const std::string& name, Tensor& tensor) {
      list.push_back({name, tensor.in_host_memory() ? tensor : Tensor(host, tensor.shape())});
    };
  };
  optimizer_.for_each_published(into(checkpoint.weights));
  optimizer_.for_each_state(into(checkpoint.state));
  if (with_batches) model_.for_each_state(into(checkpoint.state));
  return checkpoint;
}

// The host's tensors of a checkpoint and those trained, side by side; nothing where they are the
// same.
void CheckpointTensors::exchange(Checkpoint& checkpoint,
                                 const std::function<void(Tensor& host, Tensor& trained)>& copy) {
  if (model_.context().backend->host_memory) return;
  std::size_t weight = 0, state = 0;
  optimizer_.for_each_published([&](const std::string&, Tensor& tensor) {
    copy(checkpoint.weights[weight++].tensor, tensor);
  });
  const auto exchange_state = [&](const std::string&, Tensor& tensor) {
    if (state < checkpoint.state.size()) copy(checkpoint.state[state++].tensor, tensor);
  };
  optimizer_.for_each_state(exchange_state);
  model_.for_each_state(exchange_state);
}

void CheckpointTensors::download(Checkpoint& checkpoint) {
  exchange(checkpoint,
           [&](Tensor& host, Tensor& trained) { nmt::download(model_.context(), trained, host); });
}

void CheckpointTensors::upload(Checkpoint& checkpoint) {
  exchange(checkpoint, [&](Tensor& host, Tensor& trained) {
    nmt::upload(model_.context(),
                std::span<const float>(host.f32(), static_cast<std::size_t>(host.elements())),
                trained);
  });
}

CopyWeights CheckpointTensors::copy_weights() {
  return [this](ParameterSet& into) {
    optimizer_.for_each_published([&](const std::string& name, Tensor& tensor) {
      Parameter* copy = into.find(name);
      NMT_CHECK(copy && copy->shape == tensor.shape(),
                "a model for validation has no {} of shape {}", name, tensor.shape().text());
      copy_floats(model_.context(), tensor.elements(), tensor.f32(), copy->value.f32());
    });
  };
}

}  // namespace nmt::train
