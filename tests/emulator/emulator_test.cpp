// The emulator: correct kernels run, planted faults are caught by the emulator's hooks. A build
// with sanitizers has none in kernels; it catches host code that accesses device memory.

#include "core/error.h"
#include "core/rng.h"
#include "faulty.h"
#include "kernels/products/bfloat16.h"
#include "tensor/cuda_device.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <emulator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool with_hooks = false;
#else
constexpr bool with_hooks = true;
#endif

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class Emulator : public testing::Test {
 protected:
  ~Emulator() override {
    for (char* data : memory_) source_->release(data);
  }
  float* floats(const std::vector<float>& values) {
    memory_.push_back(source_->allocate(values.size() * sizeof(float)));
    device_.to_device(memory_.back(), values.data(), values.size() * sizeof(float));
    return reinterpret_cast<float*>(memory_.back());
  }
  std::vector<float> host(const float* x, int n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    device_.from_device(values.data(), x, values.size() * sizeof(float));
    return values;
  }
  static std::vector<float> ascending(int n) {
    std::vector<float> x(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 1.0f);
    return x;
  }

  CudaDevice device_;
  Cuda cuda_ = device_.handle();
  std::unique_ptr<MemorySource> source_ = device_.memory_source();
  std::vector<char*> memory_;
};

// Reads of an earlier launch after its barriers do not race with a launch without barriers.
TEST_F(Emulator, LaunchesAreOrdered) {
  float* x = floats({1});
  float* out = floats({0});
  read_late_then_change(cuda_, x, out);
  EXPECT_EQ(host(x, 1), std::vector<float>{2});
  EXPECT_EQ(host(out, 1), std::vector<float>{1});
}

TEST_F(Emulator, BarrierOrdersSharedMemory) {
  for (int n : {1, 31, 257, 1024}) {
    float* out = floats(ascending(n));
    reverse(cuda_, false, n, floats(ascending(n)), out);
    std::vector<float> want = ascending(n);
    std::reverse(want.begin(), want.end());
    EXPECT_EQ(host(out, n), want);
  }
}

TEST_F(Emulator, MissingBarrierIsCaught) {
  float* x = floats(ascending(64));
  float* out = floats(ascending(64));
  if (with_hooks) {
    // A thread may also read a location that is not written yet.
    EXPECT_THAT(
        message_of([&] { reverse(cuda_, true, 64, x, out); }),
        testing::AnyOf(testing::HasSubstr("race"), testing::HasSubstr("nobody has written")));
  } else {
    reverse(cuda_, true, 64, x, out);
    EXPECT_THAT(host(out, 64), testing::Contains(testing::IsNan()));
  }
  reverse(cuda_, false, 64, x, out);  // a failed launch has no effect on later ones
  EXPECT_EQ(host(out, 64).front(), 64.0f);
}

TEST_F(Emulator, StrayAccessesAreCaught) {
  float* x = floats(ascending(33));
  float* out = floats(ascending(33));
  copy(cuda_, false, 33, x, out);
  if (!with_hooks) {
    EXPECT_DEATH(static_cast<void>(*static_cast<volatile float*>(x)), "AddressSanitizer");
    return;
  }
  EXPECT_DEATH(read_on_host(x), "host code reads device memory");
  std::vector<float> ours(33);
  for (const std::function<void()>& stray :
       {std::function<void()>([&] { copy(cuda_, true, 33, x, out); }),
        std::function<void()>([&] { reverse_past_shared(cuda_, 33, x, out); }),
        std::function<void()>([&] { copy(cuda_, false, 33, x, ours.data()); })})
    EXPECT_THAT(message_of(stray), testing::HasSubstr("which is neither device nor shared memory"));
  EXPECT_THAT(message_of([&] { read_askew(cuda_, x, out); }),
              testing::HasSubstr("is not a multiple of its type's alignment"));
}

// Between two tensors of one allocation, behind the last one, and in memory that is free.
TEST_F(Emulator, AccessesBetweenTensorsAreCaught) {
  if (!with_hooks) GTEST_SKIP() << "needs hooks in kernels";
  Arena arena(1 << 16, device_.memory_source());
  const auto tensor = [&](std::size_t floats) { return arena.allocate(floats * sizeof(float)); };
  const auto values = [](const Block* block) { return reinterpret_cast<float*>(block->data); };
  Block* const x = tensor(64);
  for (const int n : {16, 33}) {
    Block* const out = tensor(static_cast<std::size_t>(n));
    Block* const next = tensor(16);
    copy(cuda_, false, n, values(x), values(out));
    EXPECT_THAT(message_of([&] { copy(cuda_, true, n, values(x), values(out)); }),
                testing::HasSubstr("writes 4 bytes of device memory, 0 past the end of a tensor"));
    arena.release(next);
    EXPECT_THAT(message_of([&] { copy(cuda_, false, 16, values(x), values(next)); }),
                testing::HasSubstr("past the end of a tensor"));
    arena.release(out);
  }
  EXPECT_EQ(arena.statistics().system_allocations, 1);
  // What runs later, when the arena may have changed, is not checked.
  emulator::counters().late_streams = true;
  Block* const late = tensor(16);
  copy(cuda_, false, 16, values(x), values(late));
  arena.release(late);
  device_.synchronize();
  emulator::counters().late_streams = false;
  arena.release(x);
}

TEST_F(Emulator, UndefinedBehaviorIsCaught) {
  float* out = floats({1.0f});
  index_local(cuda_, 3, out);
  divide_and_shift(cuda_, 1, 3, out);
  EXPECT_EQ(host(out, 1).front(), 9.0f);
  float* four = floats(ascending(8));
  read_vector(cuda_, 4, four, out);
  EXPECT_EQ(host(out, 1).front(), 13.0f);
  if (!with_hooks) return;
  EXPECT_THAT(message_of([&] { read_vector(cuda_, 1, four, out); }),
              testing::AllOf(testing::HasSubstr("is not a multiple of its type's alignment at "),
                             testing::HasSubstr("faulty.cu")));
  EXPECT_THAT(message_of([&] { index_local(cuda_, 4, out); }),
              testing::HasSubstr("thread (0,0,0) of block (0,0,0): an index that its array does"));
  EXPECT_THAT(message_of([&] { divide_and_shift(cuda_, 0, 3, out); }),
              testing::HasSubstr("a division by zero at "));
  EXPECT_THAT(message_of([&] { divide_and_shift(cuda_, 1, 32, out); }),
              testing::AllOf(testing::HasSubstr("too many bits"), testing::HasSubstr("faulty.cu")));
}

TEST_F(Emulator, DivergenceIsCaught) {
  EXPECT_THAT(message_of([&] { divergent_barrier(cuda_, 64, 40); }),
              testing::HasSubstr("deadlock: thread (0,0,0) of block (0,0,0) waits"));
  EXPECT_THAT(message_of([&] { two_barriers(cuda_, 32); }),
              testing::HasSubstr("divergent barrier"));
  EXPECT_THAT(message_of([&] { partial_shuffle(cuda_); }), testing::HasSubstr("deadlock"));
  float* out = floats(ascending(32));
  EXPECT_THAT(message_of([&] { shuffle_outside_mask(cuda_, out); }),
              testing::HasSubstr("reads lane 20"));
  divergent_barrier(cuda_, 64, 64);
}

TEST_F(Emulator, RacesAreCaught) {
  float* out = floats({0.0f});
  two_writers(cuda_, false, out);
  EXPECT_EQ(host(out, 1).front(), 3.0f);
  float* values = floats(ascending(64));
  warp_neighbor(cuda_, 32, values);
  EXPECT_EQ(host(values, 32)[31], 0.0f);
  // Threads write neighboring bytes of what was one number before.
  share_word(cuda_, WordFault::none, floats({0, 0, 0, 0}), out);
  EXPECT_EQ(host(out, 1).front(), 3.0f);
  if (!with_hooks) return;
  for (const WordFault fault : {WordFault::word_then_byte, WordFault::byte_then_word})
    EXPECT_THAT(message_of([&] {
                  share_word(cuda_, fault, floats({0, 0, 0, 0}), out);
                }),
                testing::HasSubstr("race"));
  EXPECT_THAT(message_of([&] { two_writers(cuda_, true, out); }), testing::HasSubstr("race"));
  EXPECT_THAT(message_of([&] { warp_neighbor(cuda_, 64, values); }),
              testing::AnyOf(testing::HasSubstr("race"), testing::HasSubstr("nobody has written")));
}

// Blocks of a cooperative launch that wait for each other.
TEST_F(Emulator, BlocksMeet) {
  constexpr int blocks = 3;
  auto* const counter = reinterpret_cast<unsigned*>(floats({0, 0}));
  const auto run = [&](MeetingFault fault) {
    float* const x = floats({0, 10, 20});
    float* const sums = floats({0, 0, 0});
    std::string message = message_of([&] { meet(cuda_, fault, blocks, counter, x, sums); });
    return std::pair(message, message.empty() ? host(sums, blocks) : std::vector<float>());
  };
  // 1 + 2 + 3 more than three times the next block's first value.
  EXPECT_EQ(run(MeetingFault::none), std::pair(std::string(), std::vector<float>{36, 66, 6}));
  EXPECT_THAT(run(MeetingFault::missing_block).first,
              testing::HasSubstr("waits at the barrier of 3 blocks"));
  EXPECT_THAT(run(MeetingFault::two_leaders).first, testing::HasSubstr("2 of 3 blocks lead it"));
  EXPECT_THAT(run(MeetingFault::wrong_count).first, testing::HasSubstr("block 2 for 4"));
  EXPECT_THAT(run(MeetingFault::missing_thread).first, testing::HasSubstr("deadlock"));
  EXPECT_THAT(message_of([&] { meet_apart(cuda_, counter, floats({0})); }),
              testing::HasSubstr("in a launch that is not cooperative"));
  EXPECT_THAT(message_of([&] { meet(cuda_, MeetingFault::none, 100, counter, nullptr, nullptr); }),
              testing::HasSubstr("too many blocks in cooperative launch"));
  float* const x = floats({0, 0, 0, 0});
  float* const out = floats({0, 0, 0, 0});
  meet_in_pairs(cuda_, false, counter, x, out);
  EXPECT_EQ(host(out, 4), (std::vector<float>{1, 0, 3, 2}));
  write_after_readers(cuda_, false, blocks, counter, x, out);
  if (!with_hooks) return;
  for (const MeetingFault fault :
       {MeetingFault::no_barrier, MeetingFault::block_barrier, MeetingFault::write_too_early})
    EXPECT_THAT(run(fault).first, testing::HasSubstr("race")) << static_cast<int>(fault);
  EXPECT_THAT(message_of([&] { meet_in_pairs(cuda_, true, counter, x, out); }),
              testing::HasSubstr("race"));
  EXPECT_THAT(message_of([&] { write_after_readers(cuda_, true, blocks, counter, x, out); }),
              testing::HasSubstr("race"));
}

TEST_F(Emulator, TensorCoresMultiply) {
  std::vector<std::uint16_t> a(256), b(128);
  std::vector<float> expected(128);
  Rng rng(7);
  for (auto* const values : {&a, &b})
    for (std::uint16_t& x : *values) x = kernels::to_bf16(static_cast<float>(rng.uniform()) - 0.5f);
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k)
        sum += double{kernels::from_bf16(a[i * 16 + k])} * kernels::from_bf16(b[j * 16 + k]);
      expected[i * 8 + j] = static_cast<float>(sum);
    }
  const auto send = [&](const std::vector<std::uint16_t>& values) {
    std::vector<float> bits(values.size() / 2);
    std::memcpy(bits.data(), values.data(), values.size() * 2);
    return reinterpret_cast<const unsigned short*>(floats(bits));
  };
  const unsigned short *const da = send(a), *const db = send(b);
  float* const c = floats(std::vector<float>(128));
  const auto run = [&](TileFault fault) {
    const std::string message = message_of([&] { multiply_tile(cuda_, fault, da, db, c); });
    return message.empty() ? "" : message;
  };
  EXPECT_EQ(run(TileFault::none), "");
  EXPECT_THAT(host(c, 128), testing::Pointwise(testing::FloatNear(1e-6f), expected));
  EXPECT_THAT(run(TileFault::half_warp), testing::HasSubstr("deadlock"));
  EXPECT_EQ(run(TileFault::layout), "");
  EXPECT_THAT(host(c, 128), testing::Not(testing::Pointwise(testing::FloatNear(1e-6f), expected)));
}

TEST_F(Emulator, UnwrittenSharedMemoryIsNoNumber) {
  float* out = floats(ascending(32));
  if (with_hooks) {
    EXPECT_THAT(message_of([&] { read_unwritten(cuda_, out); }),
                testing::HasSubstr("nobody has written"));
  } else {
    read_unwritten(cuda_, out);
    EXPECT_TRUE(std::isnan(host(out, 32)[31]));
  }
}

TEST_F(Emulator, MemoryIsLimitedAndSaysSo) {
  Arena arena(1, device_.memory_source());
  EXPECT_THAT(message_of([&] { arena.allocate(std::size_t{2} << 30); }),
              testing::AllOf(testing::HasSubstr("2048.0 MB requested"),
                             testing::HasSubstr("of 1024.0 MB free")));
  EXPECT_THAT(message_of([] { CudaDevice second(1); }),
              testing::HasSubstr("device=cuda:1: there is 1 CUDA device, from 0 to 0"));
}

}  // namespace
}  // namespace nmt::test
