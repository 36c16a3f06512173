// libnccl for tests of cuda/libraries/nccl.cpp: ranks are processes of one machine, which exchange
// values through a file in memory. A collective is work of its stream, which later work waits for
// until all ranks have come to it in their streams or the communicator is aborted, as for a kernel
// of NCCL. The real library wants an operation captured on all ranks or on none; here, on none.
// Communicators do not block: every call is in progress until its caller has asked twice, and a
// collective is not in its stream before that.

#include "tests/standins/product.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr int max_ranks = 8;
constexpr std::size_t max_values = std::size_t{1} << 16;

struct Shared {
  std::atomic<int> joined;
  std::atomic<int> given[max_ranks];       // collectives whose values a rank has written
  std::atomic<int> taken[max_ranks];       // collectives whose values a rank has read
  std::size_t kinds[2][max_ranks];         // of these collectives: operation and number of values
  float values[2][max_ranks][max_values];  // of even and odd collectives
};

enum Operation : std::size_t { sum, broadcast, operations };

// What collectives that are still in streams need after the communicator is gone.
struct Group {
  Group(Shared* shared_, int rank_, int size_) : shared(shared_), rank(rank_), size(size_) {}
  ~Group() { munmap(shared, sizeof(Shared)); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Shared* const shared;
  const int rank, size;
  int collectives = 0;
  bool aborted = false;

  bool all(const std::atomic<int> (&counts)[max_ranks], int least) const {
    for (int r = 0; r < size; ++r)
      if (counts[r] < least) return false;
    return true;
  }
};

// One collective of one rank.
struct Collective {
  std::shared_ptr<Group> group;
  Operation operation;
  const float* from;
  float* to;
  std::size_t n;
  int root;
  int number = 0;  // once it has begun

  // 0, an error, or not_ready: to be called again.
  int advance() {
    Shared& shared = *group->shared;
    const auto me = static_cast<std::size_t>(group->rank);
    if (group->aborted) return 0;
    if (number == 0) {
      // The values of the collective before the last one have been read.
      if (!group->all(shared.taken, group->collectives - 1)) return nmt::standins::not_ready;
      number = ++group->collectives;
      std::memcpy(shared.values[number % 2][me], from, n * sizeof(float));
      shared.kinds[number % 2][me] = n * operations + operation;
      shared.given[me] = number;
    }
    if (!group->all(shared.given, number)) return nmt::standins::not_ready;
    const auto& values = shared.values[number % 2];
    for (int r = 0; r < group->size; ++r)
      if (shared.kinds[number % 2][r] != shared.kinds[number % 2][me]) return cudaErrorInvalidValue;
    if (operation == broadcast) std::memcpy(to, values[root], n * sizeof(float));
    for (std::size_t i = 0; operation == sum && i < n; ++i) {
      float total = 0;
      for (int r = 0; r < group->size; ++r) total += values[r][i];
      to[i] = total;
    }
    shared.taken[me] = number;
    return 0;
  }
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  std::string name;                     // of the file, until all ranks have joined
  std::function<ncclResult_t()> begun;  // what is in progress; it may be called again
  bool asked = false;

  void forget_name() {
    if (!name.empty()) shm_unlink(name.c_str());
    name.clear();
  }
  ncclResult_t start(std::function<ncclResult_t()> work) {
    if (begun) return ncclInvalidUsage;
    begun = std::move(work);
    asked = false;
    return ncclInProgress;
  }
  ncclResult_t advance() {
    if (!begun) return ncclSuccess;
    if (!std::exchange(asked, true)) return ncclInProgress;
    const ncclResult_t status = begun();
    if (status != ncclInProgress) begun = nullptr;
    return status;
  }
  ncclResult_t begin(Operation operation, const void* from, void* to, std::size_t n,
                     ncclDataType_t type, int root, cudaStream_t stream) {
    if (type != ncclFloat32 || n > max_values || !nmt_standin_has(from, n * sizeof(float)) ||
        !nmt_standin_has(to, n * sizeof(float)))
      return ncclInvalidArgument;
    if (nmt_standin_device_of(stream) != nmt_standin_device()) return ncclInvalidArgument;
    if (nmt_standin_is_captured(stream)) return ncclInvalidUsage;
    const auto made = std::make_shared<Collective>(Collective{
        group, operation, static_cast<const float*>(from), static_cast<float*>(to), n, root});
    return start([made, stream] {
      return nmt_standin_enqueue(stream, "NCCL", [made] { return made->advance(); }) == 0
                 ? ncclSuccess
                 : ncclSystemError;
    });
  }
};

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int count = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/nmt-standin-%d-%d", getpid(), ++count);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (size > max_ranks || rank < 0 || rank >= size || config->blocking != 0)
    return ncclInvalidArgument;
  const int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  const auto group = std::make_shared<Group>(static_cast<Shared*>(memory), rank, size);
  ++group->shared->joined;
  ncclComm* const made = *communicator = new ncclComm{group, id.internal, {}};
  return made->start([made] {
    if (made->group->shared->joined < made->group->size) return ncclInProgress;
    made->forget_name();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  return communicator->start([] { return ncclSuccess; });
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  communicator->forget_name();
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  nmt_standin_failure("ncclCommAbort");
  communicator->group->aborted = true;
  return ncclCommDestroy(communicator);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* status) {
  *status = static_cast<ncclResult_t>(nmt_standin_failure("ncclCommGetAsyncError"));
  if (*status == ncclSuccess) *status = communicator->advance();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t n, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  if (const int planted = nmt_standin_failure("ncclAllReduce"); planted != 0)
    return static_cast<ncclResult_t>(planted);
  if (operation != ncclSum) return ncclInvalidArgument;
  return communicator->begin(sum, from, to, n, type, 0, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t n, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return communicator->begin(broadcast, from, to, n, type, root, stream);
}

const char* ncclGetErrorString(ncclResult_t status) {
  return status == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "another status";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
}
