// The calls of the work in a pass: watched, captured and noted, or compared with the notes.

#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"

#include <array>
#include <cstring>
#include <utility>

namespace nmt::cuda {
namespace {

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

template <class T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

bool same(const dim3& a, const dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

}  // namespace

void Graphs::memory_moves() {
  if (mode_ != Mode::watching) drop();
}

void Graphs::refuse(const char* what) {
  NMT_CHECK(mode_ == Mode::watching, "{} within work that was captured without it", what);
  entry_->unfit = true;
}

// Notes the node of the last kernel: the one dependency of the next call.
void Graphs::note_node() {
  if (fresh_.calls.empty() || fresh_.calls.back().kind != Kind::kernel) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  NMT_CUDA_CHECK(
      cudaStreamGetCaptureInfo(state_.stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else  // CUDA 12 has no edge data
  NMT_CUDA_CHECK(
      cudaStreamGetCaptureInfo(state_.stream, &status, nullptr, nullptr, &nodes, &count));
#endif
  NMT_CHECK(status == cudaStreamCaptureStatusActive && count == 1, "a captured kernel has {} nodes",
            count);
  fresh_.calls.back().node = nodes[0];
}

void Graphs::note(Kind kind, const Launch& launch, std::span<const std::byte> bytes) {
  note_node();
  part_is_empty_ = false;
  fresh_.calls.push_back({kind, launch.kernel, launch.grid, launch.block, launch.shared,
                          fresh_.bytes.size(), bytes.size(), nullptr});
  fresh_.bytes.insert(fresh_.bytes.end(), bytes.begin(), bytes.end());
}

// The next call of the notes; null, and the pass is dropped, where it is of another kind or size.
Graphs::Call* Graphs::next(Kind kind, std::size_t bytes) {
  std::vector<Call>& calls = entry_->notes.calls;
  if (at_ < calls.size() && calls[at_].kind == kind && calls[at_].bytes == bytes)
    return &calls[at_++];
  drop();
  return nullptr;
}

bool Graphs::kernel(const Launch& launch) {
  if (mode_ == Mode::dropped) return false;  // within a call too
  if (within_call_) return true;
  if (mode_ == Mode::watching) {
    ++at_;
    return true;
  }
  if (mode_ == Mode::capturing) {
    note(Kind::kernel, launch, {});
    for (std::size_t i = 0; i < launch.sizes.size(); ++i) {
      const auto* const value = static_cast<const std::byte*>(launch.arguments[i]);
      fresh_.bytes.insert(fresh_.bytes.end(), value, value + launch.sizes[i]);
    }
    fresh_.calls.back().bytes = fresh_.bytes.size() - fresh_.calls.back().begin;
    return true;
  }
  std::size_t bytes = 0;
  for (const std::size_t size : launch.sizes) bytes += size;
  Call* const call = next(Kind::kernel, bytes);
  if (!call) return false;
  if (call->kernel != launch.kernel) {
    drop();
    return false;
  }
  bool equal = same(call->grid, launch.grid) && same(call->block, launch.block) &&
               call->shared == launch.shared;
  std::byte* at = entry_->notes.bytes.data() + call->begin;
  for (std::size_t i = 0; i < launch.sizes.size(); at += launch.sizes[i++]) {
    if (std::memcmp(at, launch.arguments[i], launch.sizes[i]) == 0) continue;
    std::memcpy(at, launch.arguments[i], launch.sizes[i]);
    equal = false;
  }
  if (equal) return false;
  call->grid = launch.grid;
  call->block = launch.block;
  call->shared = launch.shared;
  const cudaKernelNodeParams node{
      const_cast<void*>(launch.kernel),     launch.grid,      launch.block,
      static_cast<unsigned>(launch.shared), launch.arguments, nullptr};
  const cudaError_t status =
      cudaGraphExecKernelNodeSetParams(entry_->parts[part_].exec, call->node, &node);
  // The notes are not those of the node then; no later call must equal them.
  if (status != cudaSuccess) call->kernel = nullptr;
  NMT_CUDA_CHECK(status);
  ++counts_.changed;
  return false;
}

bool Graphs::call(std::span<const std::int64_t> identity) {
  if (mode_ == Mode::dropped) return false;
  if (within_call_) return true;
  if (mode_ == Mode::watching) {
    ++at_;
    return within_call_ = true;
  }
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    note(Kind::other, {}, bytes);
    return within_call_ = true;
  }
  const Call* const call = next(Kind::other, bytes.size());
  if (call &&
      std::memcmp(entry_->notes.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
    drop();
  return false;
}

void Graphs::between(std::span<const std::int64_t> identity, std::function<void()> work) {
  NMT_CHECK(!within_call_ && !state_.branch.open,
            "work between graphs within a call or between fork() and join()");
  if (mode_ == Mode::watching) {
    ++at_;
    state_.recording = nullptr;  // its own calls are not reported, and it may wait for the device
    run_between(work);
    state_.recording = this;
    return;
  }
  if (mode_ == Mode::dropped) return;
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    const bool is_empty = part_is_empty_;
    note(Kind::between, {}, bytes);
    part_is_empty_ = is_empty;
    end_part();
    begin_part();
  } else {
    const Call* const call = next(Kind::between, bytes.size());
    if (!call) return;
    if (std::memcmp(entry_->notes.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
      return drop();
    ++part_;
  }
  between_.push_back(std::move(work));
}

bool Graphs::upload(void* device, const void* host, std::size_t bytes) {
  const std::size_t place = staged_;
  staged_ += rounded_up(bytes);
  if (mode_ == Mode::watching) {
    ++at_;
    return true;
  }
  if (mode_ != Mode::dropped && staged_ > entry_->staged_bytes) {
    if (mode_ == Mode::capturing) entry_->seen = false;  // measures its uploads again
    drop();
  }
  if (mode_ == Mode::dropped) return false;
  const std::array<std::int64_t, 2> identity{number(device), static_cast<std::int64_t>(bytes)};
  if (mode_ == Mode::capturing) {
    note(Kind::upload, {}, bytes_of(identity));
    NMT_CUDA_CHECK(cudaMemcpyAsync(device, entry_->staged + place, bytes, cudaMemcpyDeviceToDevice,
                                   state_.stream));
  } else {
    const Call* const call = next(Kind::upload, sizeof identity);
    if (!call) return false;
    if (std::memcmp(entry_->notes.bytes.data() + call->begin, identity.data(), sizeof identity) !=
        0) {
      drop();
      return false;
    }
  }
  std::memcpy(values_.data() + place, host, bytes);
  return false;
}

}  // namespace nmt::cuda
