// What launch() does around a launch: it raises a kernel's limit of shared memory, which the
// emulator keeps as CUDA does, and it makes equal arguments equal bytes.

#include "core/error.h"
#include "faulty.h"
#include "tensor/device_lost.h"
#include "tests/support/cuda_fixture.h"

#include <cstdlib>

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

constexpr std::size_t kilobyte = 1024;

// The calls of CUDA by themselves.
class SharedMemoryLimits : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaSuccess);
    ASSERT_EQ(allow(48 * kilobyte), cudaSuccess);  // other tests may have changed it
  }
  void TearDown() override {
    allow(48 * kilobyte);
    cudaStreamDestroy(stream);
  }
  static cudaError_t allow(std::size_t bytes) {
    return cudaFuncSetAttribute(limited_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes));
  }
  cudaError_t launch(std::size_t bytes) {
    void* arguments[] = {&bytes, nullptr};
    return cudaLaunchKernel(limited_kernel, dim3(1), dim3(1), arguments, bytes, stream);
  }
  cudaError_t launch_together(std::size_t bytes) {
    void* arguments[] = {&bytes, nullptr};
    return cudaLaunchCooperativeKernel(limited_kernel, dim3(1), dim3(1), arguments, bytes, stream);
  }
  static int resident(std::size_t bytes) {
    int blocks = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, limited_kernel, 32, bytes),
              cudaSuccess);
    return blocks;
  }
  cudaStream_t stream = nullptr;
};

TEST_F(SharedMemoryLimits, HoldForEveryKindOfLaunch) {
  for (const std::size_t limit : {48 * kilobyte, 100 * kilobyte, 60 * kilobyte, 227 * kilobyte}) {
    ASSERT_EQ(allow(limit), cudaSuccess);
    EXPECT_EQ(launch(limit), cudaSuccess) << limit;
    EXPECT_EQ(launch_together(limit), cudaSuccess) << limit;
    EXPECT_GT(resident(limit), 0) << limit;
    EXPECT_EQ(launch(limit + 1), cudaErrorInvalidValue) << limit;
    EXPECT_EQ(launch_together(limit + 1), cudaErrorInvalidValue) << limit;
    EXPECT_EQ(resident(limit + 1), 0) << limit;
  }
  EXPECT_EQ(allow(227 * kilobyte + 1), cudaErrorInvalidValue);
}

TEST_F(SharedMemoryLimits, HoldInGraphs) {
  ASSERT_EQ(allow(60 * kilobyte), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(launch(61 * kilobyte), cudaErrorInvalidValue);
  EXPECT_EQ(launch(60 * kilobyte), cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0, bytes = 60 * kilobyte;
  ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count),
            cudaSuccess);
  ASSERT_EQ(count, 1u);
  const cudaGraphNode_t node = nodes[0];
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  void* arguments[] = {&bytes, nullptr};
  cudaKernelNodeParams parameters{reinterpret_cast<void*>(limited_kernel), dim3(1),   dim3(1),
                                  static_cast<unsigned>(61 * kilobyte),    arguments, nullptr};
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &parameters), cudaErrorInvalidValue);
  parameters.sharedMemBytes = static_cast<unsigned>(60 * kilobyte);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &parameters), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(allow(50 * kilobyte), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(SharedMemoryLimits, AreThoseOfADevice) {
  setenv("NMT_EMULATED_DEVICES", "2", 1);
  ASSERT_EQ(allow(60 * kilobyte), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(resident(60 * kilobyte), 0);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_GT(resident(60 * kilobyte), 0);
  unsetenv("NMT_EMULATED_DEVICES");
}

class Launches : public WithCudaDevice {};

// As two models of nmt-serve do on one GPU: the second device needs less.
TEST_F(Launches, OfOneDeviceDoNotLowerTheLimitsOfAnother) {
  CudaDevice second;
  const std::int64_t key[] = {1};
  const auto run = [&](CudaDevice& on, std::size_t bytes) {
    on.repeat(key, [&] { use_shared(on.handle(), bytes); });
    on.synchronize();
  };
  for (int i = 0; i < 4; ++i) {
    run(*device, 120 * kilobyte);
    run(second, 70 * kilobyte);
    EXPECT_GT(shared_blocks(second.handle(), 60 * kilobyte), 0);
    EXPECT_GT(shared_blocks(device->handle(), 120 * kilobyte), 0);
    use_shared(device->handle(), 120 * kilobyte);
  }
  EXPECT_EQ(device->graph_counts().replayed, 2);
}

TEST_F(Launches, OnTwoDevicesHaveLimitsOfTheirOwn) {
  setenv("NMT_EMULATED_DEVICES", "2", 1);
  {
    CudaDevice other(1);
    for (CudaDevice* on : {device.get(), &other})
      for (const std::size_t bytes : {150 * kilobyte, 130 * kilobyte, 160 * kilobyte})
        use_shared(on->handle(), bytes);
  }
  unsetenv("NMT_EMULATED_DEVICES");
}

// A fault of a kernel is told by a later call, and by all calls after it.
TEST_F(Launches, OnALostDevice) {
  float* const x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
  try {
    use_shared(device->handle(), 300 * kilobyte);
    FAIL() << "the launch succeeded";
  } catch (const DeviceLost& error) {
    FAIL() << error.what();
  } catch (const Error&) {
  }
  float value = 0;
  device->from_device(&value, x, sizeof value);  // the device is as before
  emulator::counters().lost = true;
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { device->from_device(&value, x, sizeof value); },
                testing::ThrowsMessage<DeviceLost>(
                    testing::AllOf(testing::HasSubstr("illegal memory access"),
                                   testing::HasSubstr("this process can no longer use the GPU"))));
  EXPECT_THROW(use_shared(device->handle(), kilobyte), DeviceLost);
  EXPECT_THROW(device->synchronize(), DeviceLost);
  emulator::counters().lost = false;
  source->release(reinterpret_cast<char*>(x));
}

// Two multiprocessors of 228 KB, of which 1 KB of each block is reserved.
TEST_F(Launches, CountFixedSharedMemory) {
  const Cuda& on = device->handle();
  EXPECT_THAT([&] { use_fixed(on, 20 * kilobyte); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "51200 bytes of shared memory in a block; a kernel has 48 KB")));
  EXPECT_THROW(use_fixed(on, 20 * kilobyte), Error);  // refused by the launch
  use_fixed(on, 18 * kilobyte);
  EXPECT_EQ(fixed_blocks(on, 18 * kilobyte), 2 * (228 / 49));
  use_fixed_together(on, 2 * (228 / 49), 18 * kilobyte);
  EXPECT_THROW(use_fixed_together(on, 2 * (228 / 49) + 1, 18 * kilobyte), Error);
  EXPECT_THROW(use_fixed(on, 200 * kilobyte), Error);
  use_fixed(on, 197 * kilobyte);
  use_fixed(on, 20 * kilobyte);  // the kernel has opted in
  EXPECT_EQ(fixed_blocks(on, 120 * kilobyte), 2);
}

// The bytes between the members of an argument differ from call to call.
TEST_F(Launches, WithOtherPaddingAreTheSame) {
  auto* const x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
  const std::int64_t key[] = {1};
  const float zero = 0;
  device->to_device(x, &zero, sizeof zero);
  for (int i = 0; i < 6; ++i)
    device->repeat(key, [&] { add_padded(device->handle(), 37 * i, x, 2.0f, x); });
  float sum = 0;
  device->from_device(&sum, x, sizeof sum);
  EXPECT_EQ(sum, 12.0f);
  EXPECT_EQ(device->graph_counts().replayed, 4);
  EXPECT_EQ(device->graph_counts().changed, 0);
  for (int i = 0; i < 2; ++i)  // what is not padding
    device->repeat(key, [&] { add_padded(device->handle(), 37 * i, x, 3.0f, x); });
  EXPECT_EQ(device->graph_counts().changed, 1);
  source->release(reinterpret_cast<char*>(x));
}

// g++ 12 clears bytes of the array for padding after it.
TEST_F(Launches, WithArraysKeepTheirValues) {
  auto* const x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
  const std::int64_t key[] = {1};
  const float one = 1;
  device->to_device(x, &one, sizeof one);
  for (int i = 0; i < 4; ++i)
    device->repeat(key, [&] { add_listed(device->handle(), 1 + i, x, x); });
  float sum = 0;
  device->from_device(&sum, x, sizeof sum);
  EXPECT_EQ(sum, 2.0f * 4 * 8 * 16);
  source->release(reinterpret_cast<char*>(x));
}

}  // namespace
}  // namespace nmt::test
