// libnccl for tests of cuda/libraries/nccl.cpp: ranks are processes of one machine, which exchange
// values through a file in memory. A collective that a rank does not join leaves the stream waiting
// until the communicator is aborted, as a kernel of NCCL would.

#include "tests/standins/product.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" void nmt_standin_block(cudaStream_t stream, const std::function<bool()>& ready);

namespace {

constexpr int max_ranks = 8;
constexpr std::size_t max_values = 4096;

struct Shared {
  std::atomic<int> joined;
  std::atomic<int> given[max_ranks];       // collectives whose values a rank has written
  std::atomic<int> taken[max_ranks];       // collectives whose values a rank has read
  float values[2][max_ranks][max_values];  // of even and odd collectives
};

// Whether it became true within a time that is long for ranks of one machine.
template <class Condition>
bool in_time(Condition&& condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(500)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace

struct ncclComm {
  Shared* shared = nullptr;
  int rank = 0, size = 0, collectives = 0;
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);

  bool all(const std::atomic<int> (&counts)[max_ranks], int least) const {
    for (int r = 0; r < size; ++r)
      if (counts[r] < least) return false;
    return true;
  }
  // Every rank's values in `combine`; waits for all ranks, so that later work sees the result.
  template <class Combine>
  ncclResult_t exchange(const void* from, std::size_t n, cudaStream_t stream, Combine&& combine) {
    if (n > max_values || !nmt_standin_has(from, n * sizeof(float))) return ncclInvalidArgument;
    if (nmt_standin_device_of(stream) != nmt_standin_device()) return ncclInvalidArgument;
    const int number = ++collectives;
    auto& values = shared->values[number % 2];
    // The values of the collective before the last one have been read.
    if (!in_time([&] { return all(shared->taken, number - 2); })) return hang(stream);
    const int status = nmt_standin_enqueue(stream, "NCCL", [&] {
      std::memcpy(values[rank], from, n * sizeof(float));
      return 0;
    });
    if (status != 0) return ncclSystemError;
    shared->given[rank] = number;
    if (!in_time([&] { return all(shared->given, number); })) return hang(stream);
    nmt_standin_enqueue(stream, "NCCL", [&] {
      combine(values);
      return 0;
    });
    shared->taken[rank] = number;
    return ncclSuccess;
  }
  ncclResult_t hang(cudaStream_t stream) const {
    nmt_standin_block(stream, [aborted_ = aborted] { return *aborted_; });
    return ncclSuccess;
  }
};

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int count = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/nmt-standin-%d-%d", getpid(), ++count);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int size, ncclUniqueId id, int rank) {
  if (size > max_ranks || rank < 0 || rank >= size) return ncclInvalidArgument;
  const int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto made = std::make_unique<ncclComm>();
  made->shared = static_cast<Shared*>(memory);
  made->rank = rank;
  made->size = size;
  ++made->shared->joined;
  const bool complete = in_time([&] { return made->shared->joined >= size; });
  shm_unlink(id.internal);
  if (!complete) return ncclSystemError;
  *communicator = made.release();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  munmap(communicator->shared, sizeof(Shared));
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  nmt_standin_failure("ncclCommAbort");
  *communicator->aborted = true;
  return ncclCommDestroy(communicator);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* status) {
  *status = static_cast<ncclResult_t>(nmt_standin_failure("ncclCommGetAsyncError"));
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t n, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  return communicator->exchange(from, n, stream, [&](const auto& values) {
    for (std::size_t i = 0; i < n; ++i) {
      float sum = 0;
      for (int r = 0; r < communicator->size; ++r) sum += values[r][i];
      static_cast<float*>(to)[i] = sum;
    }
  });
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t n, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  return communicator->exchange(from, n, stream, [&](const auto& values) {
    std::memcpy(to, values[root], n * sizeof(float));
  });
}

const char* ncclGetErrorString(ncclResult_t status) {
  return status == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "another status";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
}
