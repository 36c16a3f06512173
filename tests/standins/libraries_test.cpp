// The calls of cuBLAS and cuBLASLt in cuda/libraries, against stand-ins under the libraries' names.
// The parity table's products run here too.

#include "core/error.h"
#include "kernels/products/gemm.h"
#include "tests/standins/hooks.h"
#include "tests/support/cuda_fixture.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class Libraries : public WithCudaDevice {
 protected:
  void SetUp() override {
    WithCudaDevice::SetUp();
    standins::record() = {};
    x = upload({1, 2, 3, 4, 5, 6});                    // [2,3]
    w = upload({1, 0, 0, 2, 0, 1, 0, 2, 0, 0, 1, 2});  // [3,4]
    bias = upload({10, 20, 30, 40});
    y = upload(std::vector<float>(8));
  }
  void TearDown() override {
    standins::record() = {};
    for (float* data : {x, w, bias, y})
      if (data) source->release(reinterpret_cast<char*>(data));
  }
  float* upload(const std::vector<float>& values) {
    char* const to = source->allocate(values.size() * sizeof(float));
    device->to_device(to, values.data(), values.size() * sizeof(float));
    return reinterpret_cast<float*>(to);
  }
  std::vector<float> result(std::size_t n = 8) {
    std::vector<float> values(n);
    device->from_device(values.data(), y, n * sizeof(float));
    return values;
  }
  void multiply() {
    kernels::gemm(device->handle(), false, false, 2, 4, 3, x, 3, w, 4, 0.0f, y, 4);
  }
  int calls(const char* name) { return standins::record().calls[name]; }

  const std::vector<float> product{1, 2, 3, 12, 4, 5, 6, 30},
      with_bias{11, 22, 33, 52, 14, 25, 36, 70};
  float *x = nullptr, *w = nullptr, *bias = nullptr, *y = nullptr;
};

TEST_F(Libraries, MultiplyRowMajorMatrices) {
  multiply();
  EXPECT_EQ(result(), product);
  EXPECT_EQ(calls("cublasGemmStridedBatchedEx"), 1);
}

TEST_F(Libraries, AddABiasInTheProductOrAfterIt) {
  kernels::gemm_bias(device->handle(), 2, 4, 3, x, w, bias, y);
  EXPECT_EQ(result(), with_bias);
  EXPECT_EQ(calls("cublasLtMatmul"), 1);
  EXPECT_EQ(calls("cublasGemmStridedBatchedEx"), 0);
  // Rows of three floats: the stand-in has no algorithm for them.
  kernels::gemm_bias(device->handle(), 2, 3, 4, w, w, bias, y);
  EXPECT_EQ(result(6), (std::vector<float>{11, 22, 34, 12, 22, 35}));
  EXPECT_EQ(calls("cublasLtMatmul"), 1);
  EXPECT_EQ(calls("cublasGemmStridedBatchedEx"), 1);
}

// A handle cannot make its first allocations on a full device: smaller batches may fit.
TEST_F(Libraries, WithoutMemoryAreOutOfMemory) {
  for (const char* call : {"cublasCreate", "cublasGemmStridedBatchedEx"}) {
    standins::record().failures = {{call, 3}};
    try {
      multiply();
      FAIL() << call;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(std::string(error.what()), std::string(call) + ": the resource allocation failed");
    }
    standins::record().failures.clear();
    multiply();
    EXPECT_EQ(result(), product);
  }
  for (const char* call : {"cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    standins::record().failures = {{call, 3}};
    EXPECT_THROW(kernels::gemm_bias(device->handle(), 2, 4, 3, x, w, bias, y), OutOfMemory) << call;
    standins::record().failures.clear();
    kernels::gemm_bias(device->handle(), 2, 4, 3, x, w, bias, y);
    EXPECT_EQ(result(), with_bias);
  }
}

// What a handle may answer on a full device instead; an error elsewhere.
TEST_F(Libraries, CloseAHandleThatHasNoStream) {
  standins::record().failures = {{"cublasSetStream", 3}};
  EXPECT_THROW(multiply(), OutOfMemory);
  EXPECT_EQ(calls("cublasCreate"), 1);
  EXPECT_EQ(calls("cublasDestroy"), 1);
  standins::record().failures.clear();
  multiply();
  EXPECT_EQ(result(), product);
}

TEST_F(Libraries, ThatCannotBeInitializedAreOutOfMemory) {
  const auto with_bias_too = [&] { kernels::gemm_bias(device->handle(), 2, 4, 3, x, w, bias, y); };
  standins::record().failures = {{"cublasCreate", 1}, {"cublasLtCreate", 1}};
  EXPECT_THROW(multiply(), OutOfMemory);
  EXPECT_THROW(with_bias_too(), OutOfMemory);
  standins::record().failures = {{"cublasGemmStridedBatchedEx", 1}, {"cublasLtMatmul", 1}};
  try {
    multiply();
    FAIL();
  } catch (const OutOfMemory&) {
    FAIL() << "not a matter of memory";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cublasGemmStridedBatchedEx: the library was not initialized");
  }
  standins::record().failures.clear();
  with_bias_too();
  EXPECT_EQ(result(), with_bias);
}

TEST_F(Libraries, FailuresNameTheCall) {
  standins::record().failures = {{"cublasGemmStridedBatchedEx", 13}};
  try {
    multiply();
    FAIL();
  } catch (const OutOfMemory&) {
    FAIL() << "not a matter of memory";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cublasGemmStridedBatchedEx: the function failed to launch on the GPU");
  }
}

TEST_F(Libraries, AreCapturedAndReplayed) {
  const std::int64_t key[] = {1};
  for (int i = 0; i < 4; ++i) {
    device->repeat(key, [&] {
      multiply();
      kernels::gemm_bias(device->handle(), 2, 4, 3, x, w, bias, y);
      kernels::gemm(device->handle(), false, false, 2, 4, 3, x, 3, w, 4, 1.0f, y, 4);
    });
    std::vector<float> expected = with_bias;
    for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += product[j];
    EXPECT_EQ(result(), expected) << i;
  }
  EXPECT_EQ(device->graph_counts().replayed, 2);
  EXPECT_EQ(calls("cublasGemmStridedBatchedEx"), 4);  // of the plain run and of the capture
}

// A capture ends where a product makes its handle or workspace. The product must not run then,
// since all of the work runs again.
TEST_F(Libraries, AreMadeWithinCaptures) {
  for (const bool biased : {false, true}) {
    CudaDevice other;
    const std::int64_t key[] = {1};
    float* const c = upload(std::vector<float>(1));
    for (int i = 0; i < 3; ++i)
      other.repeat(key, [&] {
        other.clear(y, sizeof(float));
        if (i == 0) return;
        if (biased) kernels::gemm_bias(other.handle(), 2, 4, 3, x, w, bias, y);
        kernels::gemm(other.handle(), false, false, 1, 1, 1, x, 1, x, 1, 1.0f, c, 1);
      });
    float found = 0;
    other.from_device(&found, c, sizeof found);
    EXPECT_EQ(found, 2.0f);
    EXPECT_EQ(calls("cublasGemmStridedBatchedEx"), 2);  // call by call, then captured
    EXPECT_EQ(calls("cublasLtMatmul"), biased ? 2 : 0);
    standins::record().calls.clear();
    source->release(reinterpret_cast<char*>(c));
  }
}

// Each of two concurrent branches has its own handle, with its own stream and workspace.
TEST_F(Libraries, HaveAHandleForEachBranch) {
  ASSERT_TRUE(device->fork());
  multiply();
  device->second_branch();
  kernels::gemm(device->handle(), false, false, 1, 1, 1, x, 1, w, 1, 0.0f, bias, 1);
  device->join();
  EXPECT_EQ(result(), product);
  EXPECT_EQ(calls("cublasCreate"), 2);
}

TEST_F(Libraries, AreClosedBeforeTheirStreams) {
  {
    CudaDevice other;
    const std::unique_ptr<MemorySource> memory = other.memory_source();
    auto* const z = reinterpret_cast<float*>(memory->allocate(2 * sizeof(float)));
    other.clear(z, 2 * sizeof(float));
    const auto square = [&](float* from) {
      kernels::gemm(other.handle(), false, false, 1, 1, 1, from, 1, from, 1, 0.0f, from, 1);
    };
    ASSERT_TRUE(other.fork());
    square(z);
    other.second_branch();
    square(z + 1);
    other.join();
    memory->release(reinterpret_cast<char*>(z));
  }
  EXPECT_EQ(calls("cublasDestroy"), 2);
  EXPECT_EQ(calls("cublasDestroy after its stream"), 0);
}

}  // namespace
}  // namespace nmt::test
