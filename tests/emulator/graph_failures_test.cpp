// Graphs on a device whose memory runs out: the work then runs call by call, exactly once, and is a
// graph again as soon as there is memory.

#include "core/error.h"
#include "kernels/pointwise.h"
#include "tests/support/cuda_fixture.h"

#include <array>
#include <memory>
#include <utility>

#include <cuda_runtime.h>
#include <emulator.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

using emulator::counters;
using emulator::Planted;

/// With one graph, or with work between two graphs.
class GraphFailures : public WithCudaDevice, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    WithCudaDevice::SetUp();
    begin();
  }
  // With a new device, which has no graphs.
  void begin() {
    end();
    device = std::make_unique<CudaDevice>();
    source = device->memory_source();
    for (float** x : {&sum, &value}) *x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
    device->clear(sum, sizeof(float));
    total = 0;
  }
  void end() {
    for (float** x : {&sum, &value})
      if (float* const data = std::exchange(*x, nullptr))
        source->release(reinterpret_cast<char*>(data));
  }
  void TearDown() override {
    for (Planted* planted : plants()) EXPECT_EQ(planted->failing, 0) << "the failure did not occur";
    for (Planted* planted : plants()) *planted = {};
    end();
  }
  static std::array<Planted*, 4> plants() {
    return {&counters().launches, &counters().instantiations, &counters().uploads,
            &counters().graph_launches};
  }
  bool has_parts() const { return GetParam(); }
  // sum += 2 v, or 3 v.
  void add(float v) {
    const std::int64_t key[] = {1};
    device->repeat(key, [&] {
      device->to_device(value, &v, sizeof v);
      kernels::add_scaled(device->handle(), 1, 1.0f, value, sum);
      if (has_parts())
        device->between_graphs(key,
                               [&] { kernels::add_scaled(device->handle(), 1, 1.0f, value, sum); });
      kernels::add_scaled(device->handle(), 1, 1.0f, value, sum);
    });
    total += v * static_cast<float>(has_parts() ? 3 : 2);
  }
  // Adds another number, and checks the sum and the counts so far.
  void check(std::int64_t recorded, std::int64_t replayed, std::int64_t plain) {
    add(next += 1.0f);
    float found = 0;
    device->from_device(&found, sum, sizeof found);
    EXPECT_EQ(found, total);
    const GraphCounts counts = device->graph_counts();
    EXPECT_EQ(counts.recorded, recorded);
    EXPECT_EQ(counts.replayed, replayed);
    EXPECT_EQ(counts.plain, plain);
  }
  float *sum = nullptr, *value = nullptr;
  float total = 0, next = 0;
};

TEST_P(GraphFailures, CannotBeInstantiated) {
  for (int good = 0; good < (has_parts() ? 2 : 1); ++good) {
    begin();
    check(0, 0, 1);
    counters().instantiations = {good, 1};
    check(0, 0, 2);
    EXPECT_EQ(device->graph_counts().held, 0);
    check(1, 0, 2);
    check(1, 1, 2);
  }
}

// The first graph runs before the others are launched, so several must be uploaded in advance.
TEST_P(GraphFailures, CannotBeUploaded) {
  for (int good = 0; has_parts() && good < 2; ++good) {
    begin();
    check(0, 0, 1);
    counters().uploads = {good, 1};
    check(0, 0, 2);
    EXPECT_EQ(device->graph_counts().held, 0);
    check(1, 0, 2);
    check(1, 1, 2);
  }
}

TEST_P(GraphFailures, CannotBeLaunchedForTheFirstTime) {
  check(0, 0, 1);
  counters().graph_launches = {0, 1};
  check(1, 0, 2);
  EXPECT_EQ(device->graph_counts().held, 0);
  check(2, 0, 2);
  check(2, 1, 2);
}

TEST_P(GraphFailures, CannotBeReplayed) {
  for (int i = 0; i < 3; ++i) check(i > 0, i > 1, 1);
  counters().graph_launches = {0, 1};
  check(2, 1, 1);  // captured again
  check(2, 2, 1);
  counters().graph_launches = {0, 2};
  check(3, 2, 2);
  EXPECT_EQ(device->graph_counts().held, 0);
  check(4, 2, 2);
  check(4, 3, 2);
}

// Memory that runs out when a part has run ends the work, which the caller repeats with less.
TEST_P(GraphFailures, EndTheWorkInALaterPart) {
  if (!has_parts()) GTEST_SKIP() << "there is one part";
  for (int i = 0; i < 3; ++i) check(i > 0, i > 1, 1);
  counters().graph_launches = {1, 1};
  EXPECT_THROW(add(1), OutOfMemory);
  total += 2;  // the first part and the work after it
  check(1, 2, 1);
}

TEST_P(GraphFailures, OfLaunches) {
  counters().launches = {1, 1};
  EXPECT_THROW(add(1), OutOfMemory);
  total += 1;
  check(0, 0, 2);
  counters().launches = {1, 1};
  EXPECT_THROW(add(1), OutOfMemory);  // in a capture: nothing has run
  check(1, 0, 2);
  check(1, 1, 2);
}

INSTANTIATE_TEST_SUITE_P(Parts, GraphFailures, testing::Bool(),
                         [](const auto& test) { return test.param ? "Several" : "One"; });

}  // namespace
}  // namespace nmt::test
