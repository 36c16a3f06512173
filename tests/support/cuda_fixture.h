#pragma once

// The fixtures of tests that need a CUDA device, or the emulator; without either they are skipped.

#include "tensor/cuda_device.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace nmt::test {

/// Skips every test where there is no device.
class NeedsCuda : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    // CTest looks for this text.
    if (!CudaDevice::is_usable(0, why)) GTEST_SKIP() << "no CUDA device to test: " << why;
  }
};

/// A device and its memory.
class WithCudaDevice : public NeedsCuda {
 protected:
  void SetUp() override {
    NeedsCuda::SetUp();
    if (IsSkipped()) return;
    device = std::make_unique<CudaDevice>();
    source = device->memory_source();
  }
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<MemorySource> source;
};

}  // namespace nmt::test
