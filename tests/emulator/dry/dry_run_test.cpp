// Dry runs: counts of launches and bytes against the sizes of the arguments.

#include "dry/dry_run.h"

#include "config/precision.h"
#include "dry/symbols.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/cuda_device.h"

#include <memory>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class DryRuns : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
#else
    dry = std::make_unique<emulator::DryRun>();
#endif
  }
  // Memory that is never freed, of the size of a paper's model and more.
  static float* floats(CudaDevice& device, std::int64_t n) {
    return reinterpret_cast<float*>(
        device.memory_source()->allocate(static_cast<std::size_t>(n) * sizeof(float)));
  }
  std::unique_ptr<emulator::DryRun> dry;
};

TEST_F(DryRuns, PointwiseKernelsMoveTheirArguments) {
  CudaDevice device;
  constexpr std::int64_t rows = 1 << 20, width = 1024, n = rows * width;
  const float *const x = floats(device, n), *const bias = floats(device, width);
  float* const y = floats(device, n);
  kernels::add_bias(device.handle(), rows, width, x, bias, y);
  kernels::add_scaled(device.handle(), n, 2.0f, x, y);
  const auto work = dry->work();
  ASSERT_TRUE(work.contains("each: add_bias")) << work.begin()->first;
  const emulator::Work& sum = work.at("each: add_bias");
  EXPECT_EQ(sum.calls, 1);
  EXPECT_NEAR(sum.read, 4.0 * (n + width), 0.01 * 4 * n);
  EXPECT_NEAR(sum.written, 4.0 * n, 0.01 * 4 * n);
  EXPECT_NEAR(work.at("each: add_scaled").read, 8.0 * n, 0.01 * 8 * n);
}

// A row is read three times, a sector counts once; the gain is the same for all rows.
TEST_F(DryRuns, SectorsCountOnce) {
  CudaDevice device;
  constexpr std::int64_t rows = 4096, width = 2048, n = rows * width;
  const float *const x = floats(device, n), *const gain = floats(device, width);
  float* const y = floats(device, n);
  kernels::layer_norm(device.handle(), rows, 1, width, x, gain, nullptr, y, nullptr);
  const auto work = dry->work();
  ASSERT_TRUE(work.contains("layer_norm_kernel<4, float>")) << work.begin()->first;
  EXPECT_NEAR(work.at("layer_norm_kernel<4, float>").read, 4.0 * (n + width), 0.01 * 4 * n);
  EXPECT_NEAR(work.at("layer_norm_kernel<4, float>").written, 4.0 * n, 0.01 * 4 * n);
}

TEST_F(DryRuns, ProductsAreCountedByTheirSizes) {
  CudaDevice device(0, Precision::bfloat16);
  constexpr std::int64_t m = 4096, n = 2048, k = 1024;
  const float *const a = floats(device, m * k), *const b = floats(device, k * n);
  float* const c = floats(device, m * n);
  kernels::gemm(device.handle(), false, false, m, n, k, a, k, b, n, 1.0f, c, n);
  const auto work = dry->work();
  const emulator::Work& product = work.at("product");
  EXPECT_EQ(product.calls, 1);
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * m * n * k);
  EXPECT_DOUBLE_EQ(product.read, 2.0 * (m * k + k * n) + 4.0 * m * n);
  EXPECT_DOUBLE_EQ(product.written, 4.0 * m * n);
  EXPECT_EQ(work.at("each: gather").calls, 2);
  EXPECT_NEAR(work.at("each: gather").written, 2.0 * (m * k + k * n), 0.02 * 2 * m * k);
}

TEST(KernelNames, AreShort) {
  EXPECT_EQ(
      emulator::short_name("nmt::kernels::(anonymous namespace)::row_loss_kernel(long, float*)"),
      "row_loss_kernel");
  EXPECT_EQ(
      emulator::short_name("void nmt::cuda::each_kernel<nmt::kernels::add_bias(nmt::Cuda const&, "
                           "long)::{lambda(long)#1}>(long, "
                           "nmt::kernels::add_bias(nmt::Cuda const&, long)::{lambda(long)#1})"),
      "each: add_bias");
  EXPECT_EQ(
      emulator::short_name("void nmt::cuda::(anonymous namespace)::forward_kernel<nmt::units::"
                           "Olrn>(nmt::cuda::UnitSteps) [clone .constprop.0]"),
      "forward_kernel<Olrn>");
}

}  // namespace
}  // namespace nmt::test
