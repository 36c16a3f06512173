// A device that waits for another process: the host's wait can be ended.

#include "core/error.h"
#include "cuda/runtime/state.h"
#include "kernels/pointwise.h"
#include "running.h"
#include "tests/support/cuda_fixture.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class Waiting : public WithCudaDevice {};

TEST_F(Waiting, EndsWithTheErrorOfTheOneWhoWatches) {
  const auto is_there = std::make_shared<bool>(false);  // outlives the stream
  std::vector<double> seconds;
  CudaDevice::State& state = device->state();
  state.while_waiting = [&](double waited) {
    seconds.push_back(waited);
    if (waited > 0.02) NMT_FAIL("rank 1 is lost");
  };
  emulator::hold_stream(state.stream, [is_there] { return *is_there; });
  try {
    device->synchronize();
    FAIL() << "the wait ended";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 1 is lost");
  }
  EXPECT_GT(seconds.size(), 3u);
  *is_there = true;
  device->synchronize();
  state.while_waiting = nullptr;
}

// A device that ends has nothing left to watch: its graphs wait without an error.
TEST_F(Waiting, EndsWithTheDevice) {
  float* const x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
  device->clear(x, sizeof(float));
  const std::int64_t key[] = {1};
  for (int i = 0; i < 3; ++i)
    device->repeat(key, [&] { kernels::add_scaled(device->handle(), 1, 1.0f, x, x); });
  source->release(reinterpret_cast<char*>(x));
  device->state().while_waiting = [](double) { NMT_FAIL("rank 1 is lost"); };
  source.reset();
  device.reset();
}

// A record that a kernel is writing is not a fault yet, and is not lost.
TEST_F(Waiting, FaultsAreReportedWhenTheyAreComplete) {
  cuda::Fault& fault = *device->state().fault;
  fault.claimed = 1;
  device->synchronize();
  EXPECT_EQ(fault.claimed, 1);
  fault.value = 7;
  fault.limit = 5;
  fault.kind = cuda::symbol_outside_vocabulary;
  try {
    device->synchronize();
    FAIL() << "no fault";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token id 7 is not in a vocabulary of size 5");
  }
  EXPECT_EQ(fault.claimed, 0);
  device->synchronize();
}

// The ring of small uploads waits when it is full.
TEST_F(Waiting, EndsInUploadsToo) {
  const auto is_there = std::make_shared<bool>(false);  // outlives the stream
  CudaDevice::State& state = device->state();
  state.while_waiting = [&](double waited) {
    if (waited > 0.01) NMT_FAIL("rank 1 is lost");
  };
  std::vector<char> bytes(1 << 20);
  char* const to = source->allocate(bytes.size());
  emulator::hold_stream(state.stream, [is_there] { return *is_there; });
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) device->to_device(to, bytes.data(), bytes.size());
      },
      Error);
  *is_there = true;
  state.while_waiting = nullptr;
  source->release(to);
}

}  // namespace
}  // namespace nmt::test
