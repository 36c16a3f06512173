// Which graphs are kept, and that the host never waits to evict one.

#include "kernels/pointwise.h"
#include "tests/support/cuda_fixture.h"

#include <cmath>
#include <random>

#include <cuda_runtime.h>
#include <emulator.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class GraphCache : public WithCudaDevice {
 protected:
  void SetUp() override {
    WithCudaDevice::SetUp();
    x = reinterpret_cast<float*>(source->allocate(sizeof(float)));
  }
  void TearDown() override { source->release(reinterpret_cast<char*>(x)); }
  // Work of ten calls, or of one.
  void repeat(std::int64_t key, int kernels_count = 9) {
    const std::int64_t keys[] = {key};
    device->repeat(keys, [&] {
      float value = static_cast<float>(key);
      device->to_device(x, &value, sizeof value);
      for (int i = 0; i < kernels_count; ++i) kernels::add_scaled(device->handle(), 1, 1.0f, x, x);
    });
  }
  float* x = nullptr;
};

// More keys than fit, in turn: with "least recently used" every graph would be evicted before its
// next use.
TEST_F(GraphCache, KeysThatDoNotFitDoNotEvictEachOther) {
  device->set_graphs(true, 100);  // ten graphs
  for (int round = 0; round < 20; ++round)
    for (int key = 0; key < 15; ++key) repeat(key);
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.held, 10);
  EXPECT_LE(counts.recorded, 20);
  EXPECT_GE(counts.replayed, 10 * 16);
}

TEST_F(GraphCache, FrequentKeysReplaceRareOnesWithoutAWait) {
  device->set_graphs(true, 100);
  for (int key = 0; key < 10; ++key)
    for (int i = 0; i < 2; ++i) repeat(key);
  const emulator::Counters before = emulator::counters();
  for (int i = 0; i < 10; ++i)
    for (int key = 20; key < 28; ++key) repeat(key);
  const emulator::Counters after = emulator::counters();
  EXPECT_EQ(after.waits, before.waits);
  EXPECT_EQ(after.destroyed_while_running, before.destroyed_while_running);
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.held, 10);
  EXPECT_LE(counts.nodes, 100);
  EXPECT_GE(counts.replayed, 8 * 6);
  float value = 0;
  device->from_device(&value, x, sizeof value);
  EXPECT_EQ(value, 27.0f * 512);  // the last key's work, replayed
}

// No memory for the host values of larger work: it runs call by call, and so does the next.
TEST_F(GraphCache, WithoutMemoryForItsValuesWorkIsPlain) {
  bool more = false;
  const std::vector<float> large(64, 2.0f);
  float* const to = reinterpret_cast<float*>(source->allocate(64 * sizeof(float)));
  float total = 0;
  const auto work = [&](float value) {
    const std::int64_t keys[] = {1};
    device->repeat(keys, [&] {
      device->to_device(x, &value, sizeof value);
      if (more) device->to_device(to, large.data(), 64 * sizeof(float));
      kernels::add_scaled(device->handle(), 1, 1.0f, x, to);
    });
    float found = 0;
    device->from_device(&found, to, sizeof found);
    total = more ? 2 + value : total + value;
    EXPECT_EQ(found, total);
  };
  device->clear(to, 64 * sizeof(float));
  for (int i = 0; i < 3; ++i) work(1);
  more = true;
  work(3);
  emulator::counters().failing_allocations = 1;
  work(4);
  EXPECT_EQ(emulator::counters().failing_allocations, 0);
  more = false;
  for (int i = 0; i < 3; ++i) work(5);
  source->release(reinterpret_cast<char*>(to));
}

// The last part of a capture in several parts fails to end. Nothing of it is left for the next one.
TEST_F(GraphCache, ACaptureThatFailsAtItsEndLeavesNoPart) {
  const std::int64_t key[] = {1};
  float expected = 1;
  const auto run = [&](bool breaks) {
    device->repeat(key, [&] {
      kernels::add_scaled(device->handle(), 1, 1.0f, x, x);
      device->between_graphs(key, [&] { kernels::add_scaled(device->handle(), 1, 1.0f, x, x); });
      kernels::add_scaled(device->handle(), 1, 1.0f, x, x);
      device->copy(x, x, sizeof *x);
      if (breaks) cudaDeviceSynchronize();  // not allowed while a stream is captured
    });
    expected *= 8;
    float value = 0;
    device->from_device(&value, x, sizeof value);
    EXPECT_EQ(value, expected);
  };
  device->to_device(x, &expected, sizeof expected);
  run(false);
  EXPECT_THROW(run(true), Error);
  device->to_device(x, &expected, sizeof expected);
  for (int i = 0; i < 3; ++i) run(false);
  EXPECT_EQ(device->graph_counts().replayed, 2);
}

// Libraries and graphs need memory too, which the arena must not take.
TEST_F(GraphCache, AllocationsLeaveAReserve) {
  const CudaDevice::Memory memory = device->memory();
  EXPECT_EQ(source->allocate(memory.free - memory.total / 256), nullptr);
  char* const small = source->allocate(1 << 20);
  EXPECT_NE(small, nullptr);
  source->release(small);
}

// Keys of the past make room, however often they were used.
TEST_F(GraphCache, FormerKeysAreReplaced) {
  device->set_graphs(true, 2);  // two graphs
  for (int i = 0; i < 9000; ++i) repeat(i % 2, 0);
  for (int i = 0; i < 16000; ++i) repeat(2 + i % 2, 0);
  const std::int64_t replayed = device->graph_counts().replayed;
  for (int i = 0; i < 100; ++i) repeat(2 + i % 2, 0);
  EXPECT_EQ(device->graph_counts().replayed, replayed + 100);
}

}  // namespace
}  // namespace nmt::test
