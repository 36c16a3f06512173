#pragma once

#include "app/compute/compute.h"
#include "app/compute/processes.h"
#include "app/train/training_spec.h"
#include "tensor/context.h"
#include "train/parallel/communicator.h"

#include <memory>

namespace nmt::app {

/// The compute resources of a training: device and memory of this process, and the ranks.
class TrainingDevice {
 public:
  /// Opens the device and logs it. `hosts`: processes.join(). Errors: as Compute and over_nccl.
  TrainingDevice(const TrainingSpec& spec, const Processes& processes, train::Communicator& hosts);
  TrainingDevice(const TrainingDevice&) = delete;

  Compute& compute() { return compute_; }
  const Compute& compute() const { return compute_; }
  const Context& context() const { return context_; }
  /// Communicates between GPUs (NCCL) if there are several, else between hosts.
  train::Communicator& ranks() const { return gpus_ ? *gpus_ : hosts_; }
  bool is_rank_0() const { return hosts_.rank() == 0; }
  bool has_several_ranks() const { return hosts_.size() > 1; }
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
