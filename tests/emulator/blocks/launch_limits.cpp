// The dynamic shared memory of kernels, which belongs to the kernel on a device of the process.

#include "running.h"

#include <map>
#include <utility>

namespace nmt::emulator {
namespace {

constexpr std::size_t usual_shared = 48 * 1024;

std::map<std::pair<int, const void*>, std::size_t>& shared_limits() {
  static std::map<std::pair<int, const void*>, std::size_t> limits;
  return limits;
}

}  // namespace

std::size_t shared_limit(const void* kernel) {
  const auto found = shared_limits().find({running.device, kernel});
  return found == shared_limits().end() ? usual_shared : found->second;
}

cudaError_t check_launch(const void* kernel, std::size_t shared) {
  if (counters().launches.fails()) return cudaErrorMemoryAllocation;
  return shared <= shared_limit(kernel) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace nmt::emulator

using namespace nmt::emulator;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > max_shared)
    return cudaErrorInvalidValue;
  shared_limits()[{running.device, kernel}] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
