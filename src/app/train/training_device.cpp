#include "app/train/training_device.h"

#include "core/log.h"

namespace nmt::app {
namespace {

// Resolves --device and --cpu-threads for this rank, and the default of --precision: on a GPU auto.
ComputeSpec of_rank(const TrainingSpec& spec, const Processes& processes) {
  ComputeSpec compute = spec.compute;
  compute.device = processes.device(compute.device);
  compute.cpu_threads = processes.threads(compute.cpu_threads);
  if (!spec.is_given("precision") && selects_gpu(compute.device)) compute.precision.reset();
  return compute;
}

}  // namespace

TrainingDevice::TrainingDevice(const TrainingSpec& spec, const Processes& processes,
                               train::Communicator& hosts)
    : hosts_(hosts), compute_(of_rank(spec, processes), ComputeUse::training) {
  log::info("{}{}; seed {}", compute_.describe("nmt-train"),
            are_several() ? fmt::format(", one of {} processes", hosts.size()) : "",
            spec.train.seed);
  if (!spec.is_given("precision") && compute_.would_be_faster_in_bfloat16())
    log::info("this processor multiplies bfloat16 faster than float32: see --precision auto");
  arena_ = compute_.new_training_arena();
  context_ = compute_.training_context(*arena_, compute_.products());
  if (are_several() && context_.cuda.device) {
    gpus_ = train::over_nccl(hosts, *context_.cuda.device, spec.compute.rank_timeout);
  }
}

}  // namespace nmt::app
