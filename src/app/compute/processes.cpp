#include "app/compute/processes.h"

#include "config/device.h"
#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "tensor/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace nmt::app {
namespace {

// Open MPI; MPICH, Intel MPI and Slurm's PMI and PMI-2; Slurm's PMIx, which does not set a size.
struct Launcher {
  const char *size, *rank;
};
constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                  {"PMI_SIZE", "PMI_RANK"},
                                  {"SLURM_STEP_NUM_TASKS", "PMIX_RANK"}};

int number(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : -1;
}

}  // namespace

Processes::Processes() = default;

Processes::Processes(int rank, int size, std::string launcher)
    : rank_(rank), size_(size), launcher_(std::move(launcher)) {
  // Only rank 0 prints the output of --help and --dump-config.
  if (!is_rank_0() && !std::freopen("/dev/null", "w", stdout)) std::fclose(stdout);
}

Processes Processes::of_environment() {
  for (const Launcher& launcher : launchers) {
    const int size = number(launcher.size), rank = number(launcher.rank);
    if (size < 2 || rank < 0 || rank >= size) continue;
    return {rank, size, fmt::format("{}={}", launcher.size, size)};
  }
  return {};
}

Processes::~Processes() = default;

train::Communicator& Processes::join() {
  if (size_ == 1) return train::alone();
  // Global, since Open MPI's plugins look for its symbols. Never closed: MPI ends at exit.
  static DynamicLibrary& library =
      *new DynamicLibrary({"libnmt_mpi.so"}, DynamicLibrary::Symbols::global);
  train::MakeCommunicator make = nullptr;
  library.find("nmt_mpi_communicator", make);
  if (!make)
    fail(ExitStatus::usage,
         "{}: started as one of {} processes, which need MPI to train together: {}; start one, or "
         "build with MPI (docs/guide/several-machines.md)",
         launcher_, size_, library.error());
  joined_.reset(make());
  rank_ = joined_->rank();
  NMT_CHECK(
      joined_->size() == size_,
      "{}: MPI reports {} processes; libnmt_mpi.so was built with a different MPI than mpirun's",
      launcher_, joined_->size());
  if (!is_rank_0()) {
    log::set_prefix(fmt::format("rank {}: ", rank_));
    log::set_level(std::max(log::level(), log::Level::error));
  }
  return *joined_;
}

std::string Processes::device(const std::string& asked) const {
  if (!joined_) return asked;
  DeviceChoice choice = parse_device(asked, "--device");
  std::string why;
  if (choice.kind == DeviceChoice::Kind::automatic && !CudaDevice::is_usable(0, why))
    choice.kind = DeviceChoice::Kind::cpu;
  double gpus = choice.kind == DeviceChoice::Kind::cpu ? 0 : 1;
  joined_->all_reduce_sum(&gpus, 1);
  if (gpus == 0) return "cpu";
  if (gpus < size_)
    fail(ExitStatus::usage,
         "--device {}: {} of {} ranks have a GPU; give all of them one, or --device cpu", asked,
         gpus, size_);
  if (asked != "cuda" && asked != "auto" && joined_->local_size() > 1)
    fail(ExitStatus::usage,
         "--device {}: one GPU for {} ranks of a machine; --device cuda gives each its own", asked,
         joined_->local_size());
  return asked == "cuda" || asked == "auto" ? fmt::format("cuda:{}", joined_->local_rank()) : asked;
}

int Processes::threads(int asked) const {
  return asked != 0 || !joined_ ? asked : std::max(1, allowed_processors() / joined_->sharing());
}

void Processes::on_error() const {
  // mpirun takes one to two seconds to end the other processes.
  if (!is_rank_0() && !(joined_ && joined_->has_lost()))
    std::this_thread::sleep_for(std::chrono::seconds(4));
}

int Processes::end(int status) {
  const bool saved = status == static_cast<int>(ExitStatus::interrupted) ||
                     status == static_cast<int>(ExitStatus::terminated);
  if (joined_ && status != 0 && !saved) joined_->abort(status);
  joined_.reset();
  return status;
}

}  // namespace nmt::app
