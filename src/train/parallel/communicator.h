#pragma once

#include "tensor/cuda_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nmt::train {

/// The processes (ranks) of a training. All ranks must make the same calls in the same order; each
/// call blocks, mostly asleep, until all ranks have made it. Results are bit-identical on all
/// ranks. Errors (failed): a rank exited unexpectedly or timed out; the message names the rank, its
/// machine and process.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Rank within this machine, and number of ranks on it.
  virtual int local_rank() const { return 0; }
  virtual int local_size() const { return 1; }
  /// Number of ranks, including this one, that may use the same processors as this one.
  virtual int sharing() const { return 1; }
  /// Sets the timeout in seconds after which a missing rank is an error; 0: no timeout.
  virtual void set_timeout(double) {}
  /// Whether a rank has been lost.
  virtual bool has_lost() const { return false; }

  /// Waits for all ranks without a timeout, for work that a single rank does.
  virtual void barrier() = 0;
  /// Replaces values[i] by its sum over all ranks, in host memory.
  virtual void all_reduce_sum(double* values, std::int64_t n) = 0;
  /// The same in device memory: host memory on the CPU, or on a GPU in the order of its stream, for
  /// which the host does not wait.
  virtual void all_reduce_sum(float* values, std::int64_t n) = 0;
  /// Waits for the hosts of all ranks, once per update, before its first sum in device memory. Does
  /// nothing where those sums wait for the hosts themselves.
  virtual void meet_before_sums() {}
  /// Starts an asynchronous all-reduce; the values must not be used until finish_sums(). All ranks
  /// must start the same sums in the same order.
  virtual void begin_sum(float* values, std::int64_t n) { all_reduce_sum(values, n); }
  /// Lets asynchronous sums make progress where that needs the CPU; to be called now and then.
  virtual void advance_sums() {}
  /// Waits for the asynchronous sums; on a GPU, only later work in its stream waits.
  virtual void finish_sums() {}
  /// All-gather in host memory: the contributions of all ranks, by rank.
  virtual std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) = 0;
  /// Broadcasts rank 0's bytes, in host memory.
  virtual void broadcast(void* data, std::size_t bytes) = 0;
  /// Broadcasts rank 0's values, in device memory.
  virtual void broadcast(float* values, std::int64_t n) = 0;
  /// Terminates all ranks with this status; does not return.
  virtual void abort(int status) = 0;
};

/// The communicator of a single process.
Communicator& alone();

/// Ranks that exchange tensors between GPUs with NCCL, and everything else with `host`. Every rank
/// has its own GPU. `timeout`: that of Nccl, in seconds. Host and device must outlive the result.
/// Errors: as Nccl.
std::unique_ptr<Communicator> over_nccl(Communicator& host, CudaDevice& device, double timeout);

/// Broadcasts rank 0's text.
void broadcast(Communicator& communicator, std::string& text);
/// Checks that all ranks have the same text. Error (usage): this rank's text differs from rank 0's;
/// the message gives the first differing line, `what` names the text.
void require_same(Communicator& communicator, const std::string& text, const std::string& what);

/// The function `nmt_mpi_communicator` exported by libnmt_mpi.so: joins the ranks started by
/// mpirun.
using MakeCommunicator = Communicator* (*)();

}  // namespace nmt::train
