#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"

#include <utility>

namespace nmt {
namespace {

// Exchanges the stream, the workspaces and the library handles of both branches.
void exchange(CudaDevice::State& state) noexcept {
  cuda::Branch& branch = state.branch;
  std::swap(state.stream, branch.stream);
  state.workspace.swap(branch.workspace);
  state.rounded.swap(branch.rounded);
  state.counters.swap(branch.counters);
  state.blas.swap(branch.blas);
  state.blas_lt.swap(branch.blas_lt);
  branch.current = !branch.current;
}

}  // namespace

bool CudaDevice::fork() {
  cuda::Branch& branch = state_->branch;
  if (branch.open) return false;
  if (!branch.stream) {
    cuda::make_current(state_->index);
    // The stream comes last: where it exists, the events do.
    for (cudaEvent_t* event : {&branch.forked, &branch.joined})
      if (!*event) NMT_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    NMT_CUDA_CHECK(cudaStreamCreateWithFlags(&branch.stream, cudaStreamNonBlocking));
  }
  branch.open = true;
  try {
    cuda::queue(handle(), {cuda::fork_call}, [&] {
      NMT_CUDA_CHECK(cudaEventRecord(branch.forked, state_->stream));
      NMT_CUDA_CHECK(cudaStreamWaitEvent(branch.stream, branch.forked, 0));
    });
  } catch (...) {
    branch.open = false;
    throw;
  }
  return true;
}

void CudaDevice::second_branch() {
  NMT_CHECK(state_->branch.open && !state_->branch.current, "a second branch without a fork");
  cuda::queue(handle(), {cuda::second_branch_call}, [] {});
  exchange(*state_);
}

void CudaDevice::join() {
  cuda::Branch& branch = state_->branch;
  NMT_CHECK(branch.open, "a join without a fork");
  if (!branch.current) second_branch();
  cuda::queue(handle(), {cuda::join_call}, [&] {
    NMT_CUDA_CHECK(cudaEventRecord(branch.joined, state_->stream));
    // The first branch's stream: the two are exchanged here.
    NMT_CUDA_CHECK(cudaStreamWaitEvent(branch.stream, branch.joined, 0));
  });
  exchange(*state_);
  branch.open = false;
}

// After an exception: later work follows both branches. Errors cannot be reported here.
void CudaDevice::abandon_branches() noexcept {
  cuda::Branch& branch = state_->branch;
  if (!branch.open) return;
  if (branch.current) exchange(*state_);
  branch.open = false;
  cudaEventRecord(branch.joined, branch.stream);          // unchecked
  cudaStreamWaitEvent(state_->stream, branch.joined, 0);  // unchecked
}

}  // namespace nmt
