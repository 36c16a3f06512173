#pragma once

// A device of a dry run for kernels with more than 2^31 elements.

#include "config/precision.h"
#include "dry/dry_run.h"
#include "tensor/cuda_device.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {

// More than 2^31, since the last block that runs is at 95 % of the grid.
inline constexpr std::int64_t large = (std::int64_t{1} << 31) / 4 * 5;

// Kernels with a thread for several elements have grids for the multiprocessors, so that with many
// of them little of the work runs. The memory is that of the largest device.
constexpr emulator::DryDevice large_device{.multiprocessors = 132'000,
                                           .memory = std::size_t{288} << 30};

class LargeShapes : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#else
    dry = std::make_unique<emulator::DryRun>(false, large_device);
    start(Precision::bfloat16);
#endif
  }
  void start(Precision precision) {
    release();
    source.reset();
    device.reset();
    device = std::make_unique<CudaDevice>(0, precision);
    source = device->memory_source();
  }
  void TearDown() override {
    release();
    source.reset();
    device.reset();
    dry.reset();
  }
  void release() {
    for (char* data : memory) source->release(data);
    memory.clear();
  }
  template <class T = float>
  T* make(std::int64_t n) {
    memory.push_back(source->allocate(static_cast<std::size_t>(n) * sizeof(T)));
    EXPECT_NE(memory.back(), nullptr) << n;
    return reinterpret_cast<T*>(memory.back());
  }
  std::int32_t* upload(const std::vector<std::int32_t>& values) {
    auto* const to = make<std::int32_t>(std::ssize(values));
    EXPECT_LE(values.size() * sizeof(std::int32_t), emulator::max_dry_copy);
    device->to_device(to, values.data(), values.size() * sizeof(std::int32_t));
    return to;
  }
  Cuda on() const {
    return device->handle();
  }
  // The work since the last call, of all kernels whose name begins so.
  emulator::Work work(const std::string& name) {
    emulator::Work sum;
    std::string names;
    for (const auto& [kernel, work] : dry->work()) {
      names += kernel + "; ";
      if (!kernel.starts_with(name)) continue;
      sum.calls += work.calls;
      sum.read += work.read;
      sum.written += work.written;
    }
    EXPECT_GT(sum.calls, 0) << "no " << name << " among " << names;
    dry->clear();
    return sum;
  }
  // Sectors that two rows or blocks share count twice; `more`: their part at most.
  void expect_written(const std::string& name, double bytes, double more = 0.1) {
    const double written = work(name).written;
    EXPECT_GE(written, 0.97 * bytes) << name;
    EXPECT_LE(written, (1 + more) * bytes) << name;
  }

  std::unique_ptr<emulator::DryRun> dry;
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<MemorySource> source;
  std::vector<char*> memory;
};

}  // namespace nmt::test
