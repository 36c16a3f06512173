#pragma once

#include "tensor/cuda_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nmt::train {

/// The processes (ranks) of one training, of which this is one. All ranks make the same calls in
/// the same order; each call waits, mostly asleep, until all have come. Results are the same bits
/// on every rank. Errors (failed): a rank has ended without a word, or has not come in time; the
/// rank, its machine and process are named.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Number among the ranks of this machine, and how many they are.
  virtual int local_rank() const { return 0; }
  virtual int local_size() const { return 1; }
  /// How many ranks, this one among them, may use the very processors that this one may use.
  virtual int sharing() const { return 1; }
  /// From here on a rank that does not come for so many seconds is an error; 0: waits without end.
  virtual void wait_at_most(double) {}
  /// Whether a rank was found to be lost.
  virtual bool has_lost() const { return false; }

  /// Waits for all ranks without a limit of time: for work that one of them does alone.
  virtual void barrier() = 0;
  /// values[i] becomes the sum of all ranks' values[i], in the host's memory.
  virtual void all_reduce_sum(double* values, std::int64_t n) = 0;
  /// The same where tensors lie: the host's memory, or the GPU's, in the order of its stream.
  virtual void all_reduce_sum(float* values, std::int64_t n) = 0;
  /// The same, begun: values are left alone until finish_sums(). All ranks begin the same sums in
  /// the same order.
  virtual void begin_sum(float* values, std::int64_t n) { all_reduce_sum(values, n); }
  /// Lets the sums begun go on where that takes the processor: to be called now and then.
  virtual void advance_sums() {}
  /// Returns when the sums begun are done: on a GPU, for what comes later in its stream.
  virtual void finish_sums() {}
  /// What every rank gives, by rank, in the host's memory.
  virtual std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) = 0;
  /// Rank 0's bytes for all, in the host's memory.
  virtual void broadcast(void* data, std::size_t bytes) = 0;
  /// Rank 0's values for all, where tensors lie.
  virtual void broadcast(float* values, std::int64_t n) = 0;
  /// Ends all ranks at once with this status; does not return.
  virtual void abort(int status) = 0;
};

/// A process that trains alone: nothing is exchanged.
Communicator& alone();

/// Ranks that exchange tensors between GPUs, by NCCL; all else goes over `host`. Every rank has a
/// GPU of its own. Both outlive it. Errors: as Nccl.
std::unique_ptr<Communicator> over_nccl(Communicator& host, CudaDevice& device);

/// Rank 0's text for all.
void broadcast(Communicator& communicator, std::string& text);
/// Error (usage): this rank's text is another than rank 0's; the first line that differs is told,
/// `what` names the whole.
void require_same(Communicator& communicator, const std::string& text, const std::string& what);

/// What libnmt_mpi.so exports, as `nmt_mpi_communicator`: joins the ranks that mpirun has started.
using MakeCommunicator = Communicator* (*)();

}  // namespace nmt::train
