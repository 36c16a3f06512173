#pragma once

#include "app/compute.h"
#include "app/processes.h"
#include "app/train/training_spec.h"
#include "tensor/context.h"
#include "train/parallel/communicator.h"

#include <memory>

namespace nmt::app {

/// Where a training computes: the device and the memory of this process, and the ranks that train
/// together.
class TrainingDevice {
 public:
  /// Opens the device and logs it. `hosts`: processes.join(). Errors: as Compute and over_nccl;
  /// (usage): the device does not train in this precision.
  TrainingDevice(const TrainingSpec& spec, const Processes& processes, train::Communicator& hosts);
  TrainingDevice(const TrainingDevice&) = delete;

  Compute& compute() { return compute_; }
  const Context& context() const { return context_; }
  /// Over the GPUs where there are several, else over the hosts.
  train::Communicator& ranks() const { return gpus_ ? *gpus_ : hosts_; }
  bool is_first() const { return hosts_.rank() == 0; }
  bool are_several() const { return hosts_.size() > 1; }
  /// As Compute::memory_used().
  std::string memory_used() const { return compute_.memory_used(*arena_); }

 private:
  train::Communicator& hosts_;
  Compute compute_;
  std::unique_ptr<Arena> arena_;
  Context context_;
  std::unique_ptr<train::Communicator> gpus_;
};

}  // namespace nmt::app
