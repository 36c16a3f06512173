// Late streams of the emulator: work runs when the host or another stream waits for it, and no
// earlier.

#include "running.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class LateStreams : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    was_late = emulator::counters().late_streams;
    emulator::counters().late_streams = true;
    for (cudaStream_t* stream : {&first, &second})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, 0), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&data, 8), cudaSuccess);
    void* memory = nullptr;
    ASSERT_EQ(cudaHostAlloc(&memory, 8, 0), cudaSuccess);
    pinned = static_cast<char*>(memory);
    fill(first, 0);
    ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  }
  void TearDown() override {
    cudaFree(data);
    cudaFreeHost(pinned);
    for (cudaStream_t stream : {first, second}) cudaStreamDestroy(stream);
    cudaEventDestroy(event);
    emulator::counters().late_streams = was_late;
  }
  void fill(cudaStream_t stream, int value) {
    ASSERT_EQ(cudaMemsetAsync(data, value, 8, stream), cudaSuccess);
  }
  void upload(const char* from) {
    ASSERT_EQ(cudaMemcpyAsync(data, from, 8, cudaMemcpyHostToDevice, first), cudaSuccess);
  }
  // The first byte in device memory now, whatever is queued.
  int now() const {
    const emulator::OpenDeviceMemory open;
    return data[0];
  }

  bool was_late = false;
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  char *data = nullptr, *pinned = nullptr;
};

TEST_F(LateStreams, RunWhenTheHostWaits) {
  fill(first, 1);
  EXPECT_EQ(now(), 0);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_EQ(now(), 0);
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_EQ(now(), 1);
}

TEST_F(LateStreams, ReadPinnedMemoryLateAndPageableMemoryAtOnce) {
  char pageable[8] = {1};
  upload(pageable);
  pageable[0] = 2;
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_EQ(now(), 1);
  pinned[0] = 3;
  upload(pinned);
  pinned[0] = 4;  // too early
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_EQ(now(), 4);
}

TEST_F(LateStreams, WritePinnedMemoryLateAndPageableMemoryAtOnce) {
  fill(first, 5);
  pinned[0] = 0;
  EXPECT_EQ(cudaMemcpyAsync(pinned, data, 1, cudaMemcpyDeviceToHost, first), cudaSuccess);
  EXPECT_EQ(pinned[0], 0);
  char pageable = 0;
  EXPECT_EQ(cudaMemcpyAsync(&pageable, data, 1, cudaMemcpyDeviceToHost, first), cudaSuccess);
  EXPECT_EQ(pageable, 5);
  EXPECT_EQ(pinned[0], 5);
}

TEST_F(LateStreams, RunUpToAnEvent) {
  fill(first, 1);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  fill(first, 2);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(now(), 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(now(), 2);
}

TEST_F(LateStreams, WaitForEachOther) {
  for (const bool waits : {false, true}) {
    fill(first, 0);
    ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
    fill(first, 1);
    ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
    fill(first, 2);
    if (waits) {
      ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    }
    ASSERT_EQ(cudaMemcpyAsync(pinned, data, 1, cudaMemcpyDeviceToHost, second), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_EQ(pinned[0], waits ? 1 : 0);
    EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  }
}

TEST_F(LateStreams, RunGraphsAsTheyWereLaunched) {
  const auto captured = [&](int value) {
    EXPECT_EQ(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(data, value, 8, first), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaSuccess);
    return graph;
  };
  cudaGraph_t one = captured(1), two = captured(2);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, one, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, first), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  cudaGraphExecUpdateResultInfo result{};
  ASSERT_EQ(cudaGraphExecUpdate(exec, two, &result), cudaSuccess);  // of later launches
  EXPECT_EQ(cudaGraphLaunch(exec, first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(now(), 0);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(now(), 1);
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_EQ(now(), 2);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(one);
  cudaGraphDestroy(two);
}

TEST_F(LateStreams, EndBeforeMemoryIsFreed) {
  void* other = nullptr;
  ASSERT_EQ(cudaMalloc(&other, 8), cudaSuccess);
  fill(first, 7);
  EXPECT_EQ(cudaFree(other), cudaSuccess);
  EXPECT_EQ(now(), 7);
}

}  // namespace
}  // namespace nmt::test
