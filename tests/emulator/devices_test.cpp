// Two devices in one process, used in turn: every call has to select its device.

#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/branches.h"
#include "tensor/cuda_timer.h"
#include "tests/support/cuda_fixture.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class TwoDevices : public testing::Test {
 protected:
  struct Place {
    explicit Place(int index) : device(index), source(device.memory_source()) {
      x = reinterpret_cast<float*>(source->allocate(6 * sizeof(float)));
      y = reinterpret_cast<float*>(source->allocate(6 * sizeof(float)));
    }
    ~Place() {
      for (float* data : {x, y}) source->release(reinterpret_cast<char*>(data));
    }
    CudaDevice device;
    std::unique_ptr<MemorySource> source;
    float *x = nullptr, *y = nullptr;
  };
  void SetUp() override { setenv("NMT_EMULATED_DEVICES", "2", 1); }
  void TearDown() override { unsetenv("NMT_EMULATED_DEVICES"); }
};

TEST_F(TwoDevices, AreUsedInTurn) {
  Place first(0), second(1);
  for (int i = 0; i < 5; ++i)
    for (Place* place : {&first, &second}) {
      const float start = static_cast<float>(i) + (place == &second ? 100.0f : 0.0f);
      const std::int64_t key[] = {1};
      CudaTimer timer(place->device);
      timer.mark();
      timer.mark();
      place->device.repeat(key, [&] {
        const Cuda on = place->device.handle();
        const std::vector<float> values(6, start);
        place->device.to_device(place->x, values.data(), 6 * sizeof(float));
        kernels::add_scaled(on, 6, 1.0f, place->x, place->x);
        place->device.clear(place->y, 6 * sizeof(float));
        place->device.copy(place->y, place->x, 4 * sizeof(float));
        if (place->device.fork()) {
          kernels::fill(on, place->y + 4, 1, 1.0f);
          place->device.second_branch();
          kernels::fill(on, place->y + 5, 1, 2.0f);
          place->device.join();
        }
      });
      std::vector<float> found(6);
      place->device.from_device(found.data(), place->y, 6 * sizeof(float));
      EXPECT_EQ(found, (std::vector<float>{2 * start, 2 * start, 2 * start, 2 * start, 1, 2}));
    }
  EXPECT_EQ(first.device.graph_counts().replayed, 3);
  EXPECT_EQ(second.device.graph_counts().replayed, 3);
}

}  // namespace
}  // namespace nmt::test
