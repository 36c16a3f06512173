// The shared memory of kernels: the dynamic one that a kernel may have on a device of the process,
// and the fixed one, which the emulator knows as soon as a block of the kernel has declared it.

#include "running.h"

#include <algorithm>
#include <map>
#include <utility>

namespace nmt::emulator {
namespace {

constexpr std::size_t usual_shared = 48 * 1024;

std::map<std::pair<int, const void*>, std::size_t>& shared_limits() {
  static std::map<std::pair<int, const void*>, std::size_t> limits;
  return limits;
}

std::map<const void*, std::size_t>& fixed_sizes() {
  static std::map<const void*, std::size_t> sizes;
  return sizes;
}

}  // namespace

std::size_t shared_limit(const void* kernel) {
  const auto found = shared_limits().find({running.device, kernel});
  const std::size_t limit = found == shared_limits().end() ? usual_shared : found->second;
  return std::min(limit, (limit > usual_shared ? max_shared : usual_shared) - fixed_shared(kernel));
}

bool has_opted_in(const void* kernel) {
  const auto found = shared_limits().find({running.device, kernel});
  return found != shared_limits().end() && found->second > usual_shared;
}

std::size_t fixed_shared(const void* kernel) {
  const auto found = fixed_sizes().find(kernel);
  return found == fixed_sizes().end() ? 0 : found->second;
}

std::size_t note_fixed_shared(const void* kernel, std::size_t bytes) {
  std::size_t& known = fixed_sizes()[kernel];
  return known = std::min(std::max(known, bytes), usual_shared);
}

int blocks_with(std::size_t threads, std::size_t shared) {
  const std::size_t by_threads = max_resident_threads / threads,
                    by_shared = shared_per_multiprocessor / (shared + 1024);
  return static_cast<int>(std::min({by_threads, by_shared, std::size_t{32}}));
}

int resident_blocks(const void* kernel, std::size_t threads, std::size_t shared) {
  return blocks_with(threads, shared + fixed_shared(kernel));
}

cudaError_t check_launch(const void* kernel, std::size_t shared) {
  if (counters().launches_until_loss >= 0 && counters().launches_until_loss-- == 0)
    counters().lost = true;
  if (counters().lost) return cudaErrorIllegalAddress;
  if (counters().launches.fails()) return cudaErrorMemoryAllocation;
  return shared <= shared_limit(kernel) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace nmt::emulator

using namespace nmt::emulator;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) + fixed_shared(kernel) > max_shared)
    return cudaErrorInvalidValue;
  shared_limits()[{running.device, kernel}] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
