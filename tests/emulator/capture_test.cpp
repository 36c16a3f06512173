// Captures and graphs of the emulator: what runs, in which order, and which calls are refused as by
// a driver.

#include <functional>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class Capture : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    for (cudaStream_t* stream : {&first, &second})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, 0), cudaSuccess);
    for (cudaEvent_t* event : {&forked, &joined}) ASSERT_EQ(cudaEventCreate(event), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&data, 8), cudaSuccess);
    void* memory = nullptr;
    ASSERT_EQ(cudaHostAlloc(&memory, 8, 0), cudaSuccess);
    pinned = static_cast<char*>(memory);
  }
  void TearDown() override {
    cudaFree(data);
    cudaFreeHost(pinned);
    for (cudaStream_t stream : {first, second}) cudaStreamDestroy(stream);
    for (cudaEvent_t event : {forked, joined}) cudaEventDestroy(event);
  }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(first, &graph);
    EXPECT_EQ(graph != nullptr, status == cudaSuccess);
    if (graph) cudaGraphDestroy(graph);
    return status;
  }
  // Captures, runs and reads the first byte.
  int run() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, first), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(pinned, data, 1, cudaMemcpyDeviceToHost, first), cudaSuccess);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return pinned[0];
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;
  char *data = nullptr, *pinned = nullptr;
};

TEST_F(Capture, RunsWhenLaunchedAlone) {
  ASSERT_EQ(cudaMemsetAsync(data, 1, 8, first), cudaSuccess);
  begin();
  ASSERT_EQ(cudaMemsetAsync(data, 2, 8, first), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, data, 1, cudaMemcpyDeviceToHost, second), cudaSuccess);
  EXPECT_EQ(pinned[0], 1);
  EXPECT_EQ(run(), 2);
}

// Calls that are not allowed during a capture invalidate it.
TEST_F(Capture, RefusesWhatADriverRefuses) {
  char ordinary[8] = {};
  void* memory = nullptr;
  std::size_t free = 0, total = 0;
  const std::vector<std::function<cudaError_t()>> planted{
      [&] { return cudaStreamSynchronize(first); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMalloc(&memory, 8); },
      [&] { return cudaFree(data); },
      [&] { return cudaMemGetInfo(&free, &total); },
      [&] { return cudaHostAlloc(&memory, 8, 0); },
      [&] { return cudaEventSynchronize(forked); },
      [&] { return cudaMemcpyAsync(data, ordinary, 8, cudaMemcpyHostToDevice, first); },
      [&] { return cudaMemcpyAsync(ordinary, data, 8, cudaMemcpyDeviceToHost, first); },
  };
  ASSERT_EQ(cudaEventRecord(forked, first), cudaSuccess);
  for (std::size_t i = 0; i < planted.size(); ++i) {
    begin();
    EXPECT_EQ(planted[i](), cudaErrorStreamCaptureUnsupported) << i;
    EXPECT_EQ(cudaMemsetAsync(data, 1, 8, first), cudaErrorStreamCaptureInvalidated) << i;
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated) << i;
    EXPECT_EQ(cudaMemsetAsync(data, 1, 8, first), cudaSuccess) << i;
  }
  begin();
  ASSERT_EQ(cudaEventRecord(forked, first), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(forked), cudaErrorCapturedEvent);
  EXPECT_EQ(end(), cudaSuccess);
}

// Branches: later calls may run first unless an event orders them.
TEST_F(Capture, BranchesAreOrderedByEventsAlone) {
  for (const bool ordered : {true, false}) {
    begin();
    ASSERT_EQ(cudaEventRecord(forked, first), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(second, forked, 0), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(data, 3, 8, second), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(joined, second), cudaSuccess);
    const auto join = [&] { ASSERT_EQ(cudaStreamWaitEvent(first, joined, 0), cudaSuccess); };
    if (ordered) join();
    ASSERT_EQ(cudaMemsetAsync(data, 4, 8, first), cudaSuccess);
    if (!ordered) join();
    EXPECT_EQ(run(), ordered ? 4 : 3);
  }
  begin();
  ASSERT_EQ(cudaEventRecord(forked, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, forked, 0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(data, 3, 8, second), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
}

TEST_F(Capture, UpdatesTakeTheSameFormAlone) {
  const auto captured = [&](int value, int times) {
    begin();
    for (int i = 0; i < times; ++i) EXPECT_EQ(cudaMemsetAsync(data, value, 8, first), cudaSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaSuccess);
    return graph;
  };
  const cudaGraph_t one = captured(1, 1), other = captured(2, 1), longer = captured(3, 2);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, one, 0), cudaSuccess);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(exec, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(cudaGraphExecUpdate(exec, other, &info), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, first), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, data, 1, cudaMemcpyDeviceToHost, first), cudaSuccess);
  EXPECT_EQ(pinned[0], 2);
  cudaGraphExecDestroy(exec);
  for (const cudaGraph_t graph : {one, other, longer}) cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace nmt::test
