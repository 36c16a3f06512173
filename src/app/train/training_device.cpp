#include "app/train/training_device.h"

#include "core/log.h"

namespace nmt::app {
namespace {

// Resolves --device and --cpu-threads for this rank.
ComputeSpec of_rank(const TrainingSpec& spec, const Processes& processes) {
  ComputeSpec compute = spec.compute;
  compute.device = processes.device(compute.device);
  compute.cpu_threads = processes.threads(compute.cpu_threads);
  return compute;
}

}  // namespace

TrainingDevice::TrainingDevice(const TrainingSpec& spec, const Processes& processes,
                               train::Communicator& hosts)
    : hosts_(hosts), compute_(of_rank(spec, processes), ComputeUse::training) {
  log::info("{}{}; seed {}", compute_.describe("nmt-train"),
            has_several_ranks() ? fmt::format(", one of {} processes", hosts.size()) : "",
            spec.train.seed);
  arena_ = compute_.new_training_arena();
  context_ = compute_.training_context(*arena_, compute_.open_products());
  if (has_several_ranks() && context_.cuda.device) {
    gpus_ = train::over_nccl(hosts, *context_.cuda.device, spec.compute.rank_timeout);
  }
}

}  // namespace nmt::app
