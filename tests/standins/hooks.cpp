// What the stand-ins call in the test program.

#include "tests/standins/hooks.h"

#include "running.h"
#include "tests/standins/product.h"

using namespace nmt;

namespace nmt::standins {

Record& record() {
  static Record all;
  return all;
}

}  // namespace nmt::standins

int nmt_standin_enqueue(cudaStream_t stream, const char* name, const std::function<int()>& work) {
  const auto run = [work] {
    const emulator::OpenDeviceMemory open;
    return static_cast<cudaError_t>(work());
  };
  return emulator::submit(stream, name, run);
}
bool nmt_standin_is_captured(cudaStream_t stream) {
  return emulator::is_captured(stream);
}
bool nmt_standin_has(const void* data, std::size_t bytes) {
  return bytes == 0 || emulator::device_region(data).has(data, bytes);
}
bool nmt_standin_exists(cudaStream_t stream) {
  return !stream || emulator::exists(stream);
}
int nmt_standin_device() {
  return emulator::running.device;
}
int nmt_standin_device_of(cudaStream_t stream) {
  return emulator::is_on_current_device(stream) ? emulator::running.device : -1;
}
int nmt_standin_failure(const char* call) {
  standins::Record& all = standins::record();
  ++all.calls[call];
  const auto found = all.failures.find(call);
  return found == all.failures.end() ? 0 : found->second;
}
