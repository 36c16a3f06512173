// A device: copies, memory, and the faults that kernels report to the host.

#include "core/error.h"
#include "kernels/pointwise.h"
#include "tests/support/cuda_fixture.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class Device : public WithCudaDevice {};

TEST_F(Device, CopiesComeBack) {
  std::vector<float> values(257), back(257);
  std::iota(values.begin(), values.end(), 1.0f);
  const std::size_t bytes = values.size() * sizeof(float);
  char *a = source->allocate(bytes), *b = source->allocate(bytes);
  device->to_device(a, values.data(), bytes);
  device->copy(b, a, bytes);
  device->to_device(a, back.data(), bytes);
  device->from_device(back.data(), b, bytes);
  EXPECT_EQ(back, values);
  source->release(a);
  source->release(b);
}

TEST_F(Device, MemoryIsCountedAndRunsOut) {
  const CudaDevice::Memory before = device->memory();
  EXPECT_GT(before.free, 0u);
  EXPECT_LE(before.free, before.total);
  EXPECT_EQ(source->allocate(before.total + (std::size_t{1} << 30)), nullptr);
  char* some = source->allocate(std::size_t{64} << 20);
  ASSERT_NE(some, nullptr);
  EXPECT_LT(device->memory().free, before.free);
  source->release(some);
}

TEST_F(Device, AWrongSymbolIsToldAtTheNextWait) {
  const std::vector<std::int32_t> ids{3, 25, 3}, runs = kernels::id_runs(ids);
  const std::vector<float> dy{1, 2, 4}, zeros(20);
  char* const d_ids = source->allocate(sizeof(float) * 3);
  char* const d_runs = source->allocate(sizeof(float) * 7);
  char* const d_dy = source->allocate(sizeof(float) * 3);
  char* const d_table = source->allocate(sizeof(float) * 20);
  device->to_device(d_ids, ids.data(), sizeof(float) * 3);
  device->to_device(d_runs, runs.data(), sizeof(float) * 7);
  device->to_device(d_dy, dy.data(), sizeof(float) * 3);
  device->to_device(d_table, zeros.data(), sizeof(float) * 20);
  kernels::scatter_add_rows(device->handle(), 3, 1, 20, reinterpret_cast<std::int32_t*>(d_ids),
                            reinterpret_cast<std::int32_t*>(d_runs), reinterpret_cast<float*>(d_dy),
                            reinterpret_cast<float*>(d_table));
  try {
    device->synchronize();
    FAIL() << "symbol 25 went unnoticed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token id 25 is not in a vocabulary of size 20");
  }
  std::vector<float> table(20);
  device->from_device(table.data(), d_table, sizeof(float) * 20);  // reported once
  EXPECT_EQ(table[3], 5.0f);
  for (char* data : {d_ids, d_runs, d_dy, d_table}) source->release(data);
}

}  // namespace
}  // namespace nmt::test
