// The calls of a pass: counted (eager), captured and recorded, or compared with the record.

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

void GraphCache::on_memory_change() {
  if (mode_ != Mode::eager) abort_pass();
}

void GraphCache::forbid_capture(const char* what) {
  NMT_CHECK(mode_ == Mode::eager, "{} within work that was captured without it", what);
  entry_->is_disabled = true;
}

// Records the node of the last kernel: the only dependency of the next call.
void GraphCache::record_node() {
  if (new_record_.calls.empty() || new_record_.calls.back().kind != Kind::kernel) return;
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
  new_record_.calls.back().node = nodes[0];
}

void GraphCache::record_call(Kind kind, const Launch& launch, std::span<const std::byte> bytes) {
  record_node();
  capture_is_empty_ = false;
  new_record_.calls.push_back({kind, launch.kernel, launch.grid, launch.block, launch.shared,
                               new_record_.bytes.size(), bytes.size(), nullptr});
  new_record_.bytes.insert(new_record_.bytes.end(), bytes.begin(), bytes.end());
}

// The next call of the record. Null, and the pass is aborted, if its kind or size differs.
GraphCache::RecordedCall* GraphCache::next_recorded(Kind kind, std::size_t bytes) {
  std::vector<RecordedCall>& calls = entry_->record.calls;
  if (call_index_ < calls.size() && calls[call_index_].kind == kind &&
      calls[call_index_].bytes == bytes)
    return &calls[call_index_++];
  abort_pass();
  return nullptr;
}

bool GraphCache::on_kernel(const Launch& launch) {
  if (mode_ == Mode::aborted) return false;  // within a call too
  if (within_call_) return true;
  if (mode_ == Mode::eager) {
    ++call_index_;
    return true;
  }
  if (mode_ == Mode::capturing) {
    record_call(Kind::kernel, launch, {});
    for (std::size_t i = 0; i < launch.sizes.size(); ++i) {
      const auto* const value = static_cast<const std::byte*>(launch.arguments[i]);
      new_record_.bytes.insert(new_record_.bytes.end(), value, value + launch.sizes[i]);
    }
    new_record_.calls.back().bytes = new_record_.bytes.size() - new_record_.calls.back().begin;
    return true;
  }
  std::size_t bytes = 0;
  for (const std::size_t size : launch.sizes) bytes += size;
  RecordedCall* const call = next_recorded(Kind::kernel, bytes);
  if (!call) return false;
  if (call->kernel != launch.kernel) {
    abort_pass();
    return false;
  }
  bool equal = same(call->grid, launch.grid) && same(call->block, launch.block) &&
               call->shared == launch.shared;
  std::byte* recorded = entry_->record.bytes.data() + call->begin;
  for (std::size_t i = 0; i < launch.sizes.size(); recorded += launch.sizes[i++]) {
    if (std::memcmp(recorded, launch.arguments[i], launch.sizes[i]) == 0) continue;
    std::memcpy(recorded, launch.arguments[i], launch.sizes[i]);
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
      cudaGraphExecKernelNodeSetParams(entry_->parts[part_index_].exec, call->node, &node);
  // After a failure the node does not match the record, so no later call may match either.
  if (status != cudaSuccess) call->kernel = nullptr;
  NMT_CUDA_CHECK(status);
  ++counts_.changed;
  return false;
}

bool GraphCache::begin_call(std::span<const std::int64_t> identity) {
  if (mode_ == Mode::aborted) return false;
  if (within_call_) return true;
  if (mode_ == Mode::eager) {
    ++call_index_;
    return within_call_ = true;
  }
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    record_call(Kind::other, {}, bytes);
    return within_call_ = true;
  }
  const RecordedCall* const call = next_recorded(Kind::other, bytes.size());
  if (call &&
      std::memcmp(entry_->record.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
    abort_pass();
  return false;
}

void GraphCache::between_graphs(std::span<const std::int64_t> identity,
                                std::function<void()> work) {
  NMT_CHECK(!within_call_ && !state_.branch.open,
            "work between graphs within a call or between fork() and join()");
  if (mode_ == Mode::eager) {
    ++call_index_;
    state_.recording = nullptr;  // calls of the work between are not reported; it may wait
    run_work_between(work);
    state_.recording = this;
    return;
  }
  if (mode_ == Mode::aborted) return;
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    const bool is_empty = capture_is_empty_;
    record_call(Kind::between, {}, bytes);
    capture_is_empty_ = is_empty;
    end_capture();
    begin_capture();
  } else {
    const RecordedCall* const call = next_recorded(Kind::between, bytes.size());
    if (!call) return;
    if (std::memcmp(entry_->record.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
      return abort_pass();
    ++part_index_;
  }
  work_between_.push_back(std::move(work));
}

bool GraphCache::on_upload(void* device, const void* host, std::size_t bytes) {
  const std::size_t offset = upload_bytes_;
  upload_bytes_ += rounded_up(bytes);
  if (mode_ == Mode::eager) {
    ++call_index_;
    return true;
  }
  if (mode_ != Mode::aborted && upload_bytes_ > entry_->upload_buffer_bytes) {
    if (mode_ == Mode::capturing) entry_->is_measured = false;  // the next run measures them
    abort_pass();
  }
  if (mode_ == Mode::aborted) return false;
  const std::array<std::int64_t, 2> identity{as_integer(device), static_cast<std::int64_t>(bytes)};
  if (mode_ == Mode::capturing) {
    record_call(Kind::upload, {}, bytes_of(identity));
    NMT_CUDA_CHECK(cudaMemcpyAsync(device, entry_->upload_buffer + offset, bytes,
                                   cudaMemcpyDeviceToDevice, state_.stream));
  } else {
    const RecordedCall* const call = next_recorded(Kind::upload, sizeof identity);
    if (!call) return false;
    if (std::memcmp(entry_->record.bytes.data() + call->begin, identity.data(), sizeof identity) !=
        0) {
      abort_pass();
      return false;
    }
  }
  std::memcpy(upload_values_.data() + offset, host, bytes);
  return false;
}

}  // namespace nmt::cuda
