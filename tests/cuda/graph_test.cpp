// Recurring work as CUDA graphs: what is replayed, what may differ, and what no graph can hold.

#include "core/error.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/cuda_timer.h"
#include "tests/support/cuda_fixture.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class RecurringWork : public WithCudaDevice {
 protected:
  void SetUp() override {
    WithCudaDevice::SetUp();
    if (IsSkipped()) return;
    for (float*& x : {std::ref(a), std::ref(b), std::ref(c)}) {
      x = reinterpret_cast<float*>(source->allocate(n * sizeof(float)));
      kernels::fill(on(), x, n, 0.0f);
    }
  }
  void TearDown() override {
    for (float* x : {a, b, c})
      if (x) source->release(reinterpret_cast<char*>(x));
  }
  Cuda on() const { return device->handle(); }
  void repeat(std::int64_t key, const std::function<void()>& work) {
    const std::int64_t keys[] = {key};
    device->repeat(keys, work);
  }
  std::vector<float> host(const float* x) const {
    std::vector<float> values(n);
    device->from_device(values.data(), x, n * sizeof(float));
    return values;
  }

  static constexpr std::int64_t n = 6;
  float *a = nullptr, *b = nullptr, *c = nullptr;
};

// All kinds of calls: uploads, kernels, a product, a copy, a clear. Values and arguments differ in
// every run.
TEST_F(RecurringWork, IsReplayedWithItsNewValues) {
  for (int i = 0; i < 6; ++i) {
    const float step = static_cast<float>(i);
    repeat(1, [&] {
      const std::vector<float> values{step, 1, 2, 3, 4, 5};
      device->to_device(a, values.data(), n * sizeof(float));
      device->clear(c, n * sizeof(float));
      kernels::fill(on(), b, n, step);                                     // another argument
      kernels::gemm(on(), false, false, 2, 2, 3, a, 3, b, 2, 1.0f, c, 2);  // c[2,2] = a[2,3] b[3,2]
      device->copy(c + 4, a, sizeof(float));
      kernels::add_scaled(on(), 5, 1.0f, c, c);  // doubles
    });
    const float first = step * (step + 1 + 2), second = step * (3 + 4 + 5);
    EXPECT_EQ(host(c),
              (std::vector<float>{2 * first, 2 * first, 2 * second, 2 * second, 2 * step, 0}))
        << i;
  }
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.plain, 1);
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 4);
  EXPECT_EQ(counts.changed, 4);  // the fill of each
  EXPECT_EQ(counts.misfits, 0);
  EXPECT_EQ(counts.held, 1);
  EXPECT_EQ(counts.nodes, 6);
}

// Recurring work within other recurring work is part of it, and has no graph of its own. Where the
// outer work cannot be a graph, the inner one can.
TEST_F(RecurringWork, WithinOtherWorkIsPartOfIt) {
  bool reads = false;
  const auto work = [&](std::int64_t key, float value) {
    repeat(key, [&] {
      float read = 0;
      kernels::fill(on(), a, n, value);
      if (reads) device->from_device(&read, a, sizeof read);
      for (int i = 0; i < 2; ++i) repeat(2, [&] { kernels::add_scaled(on(), n, 1.0f, a, c); });
      kernels::add_scaled(on(), n, 1.0f, a, c);
    });
  };
  float total = 0;
  for (int i = 1; i <= 5; ++i) {
    work(1, static_cast<float>(i));
    total += 3 * static_cast<float>(i);
    EXPECT_EQ(host(c)[0], total) << i;
  }
  GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.plain, 1);
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 3);
  EXPECT_EQ(counts.nodes, 4);
  reads = true;
  for (int i = 1; i <= 3; ++i) work(3, 1.0f);
  EXPECT_EQ(host(c)[0], total + 9);
  counts = device->graph_counts();
  EXPECT_EQ(counts.plain, 1 + 3 + 1);  // the outer work, and the inner one once by itself
  EXPECT_EQ(counts.recorded, 2);
  EXPECT_EQ(counts.replayed, 3 + 2);
  EXPECT_EQ(counts.held, 2);
}

// A product with other addresses updates the graph; other calls replace it. Every call runs exactly
// once.
TEST_F(RecurringWork, OfAnotherFormIsDoneAllTheSame) {
  float total = 0;
  const auto add = [&](int kernels_count, float* product) {
    repeat(1, [&] {
      for (int k = 0; k < kernels_count; ++k) {
        kernels::fill(on(), b, n, 1.0f);
        kernels::add_scaled(on(), n, 1.0f, b, c);
      }
      kernels::gemm(on(), false, false, 1, 1, 1, b, 1, b, 1, 0.0f, product, 1);
    });
    total += static_cast<float>(kernels_count);
    EXPECT_EQ(host(c)[0], total);
    float one = 0;
    device->from_device(&one, product, sizeof(float));
    EXPECT_EQ(one, 1.0f);
    kernels::fill(on(), a, n, 0.0f);
  };
  for (int i = 0; i < 3; ++i) add(2, a);
  add(2, a + 1);
  EXPECT_EQ(device->graph_counts().updated, 1);
  add(2, a + 1);
  add(3, a);
  add(3, a);
  add(1, a);
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.recorded, 3);
  EXPECT_EQ(counts.misfits, 3);
  EXPECT_EQ(counts.replayed, 3);
}

// Work between graphs runs once, where it stands, however its surroundings are launched. What is
// before and after it, and nothing, are parts of their own.
TEST_F(RecurringWork, RunsWorkBetweenGraphsInItsPlace) {
  std::vector<int> order;
  const auto between = [&](std::int64_t identity, float* to, const float* from) {
    const std::int64_t identities[] = {identity};
    device->between_graphs(identities, [this, &order, identity, to, from] {
      order.push_back(static_cast<int>(identity));
      device->copy(to, from, sizeof(float));
    });
  };
  for (int i = 0; i < 6; ++i) {
    const float step = static_cast<float>(i);
    order.clear();
    repeat(1, [&] {
      kernels::fill(on(), b, n, step);
      between(1, c, b);
      kernels::fill(on(), b, n, step + 10);
      const std::vector<float> values(n, step + 20);
      device->to_device(a, values.data(), n * sizeof(float));
      between(2, c + 1, b);
      between(3, c + 2, a);
      kernels::fill(on(), b, n, step + 30);
    });
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3})) << i;
    EXPECT_EQ(host(c), (std::vector<float>{step, step + 10, step + 20, 0, 0, 0})) << i;
    EXPECT_EQ(host(b), std::vector<float>(n, step + 30)) << i;
  }
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.plain, 1);
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 4);
  EXPECT_EQ(counts.changed, 12);  // a fill in each of three parts
  EXPECT_EQ(counts.misfits, 0);
}

// A difference after work between graphs is found before anything runs. The form of the work, its
// addresses and the work between graphs differ in turn; memory moves in between.
TEST_F(RecurringWork, RunsWorkBetweenGraphsOnceWhereCallsDiffer) {
  float total = 0;
  std::vector<std::int64_t> ran;
  const auto add = [&](std::int64_t identity, int kernels_count, float* to, bool moves = false) {
    ran.clear();
    repeat(1, [&] {
      kernels::fill(on(), b, n, 1.0f);
      const std::int64_t identities[] = {identity};
      device->between_graphs(identities, [this, &ran, identity] {
        ran.push_back(identity);
        kernels::add_scaled(on(), n, 1.0f, b, c);
      });
      if (moves) source->release(source->allocate(64));
      for (int k = 0; k < kernels_count; ++k) kernels::add_scaled(on(), n, 1.0f, b, c);
      device->copy(to, c, sizeof(float));
    });
    total += static_cast<float>(1 + kernels_count);
    EXPECT_EQ(ran, std::vector<std::int64_t>{identity});
    EXPECT_EQ(host(c)[0], total);
    EXPECT_EQ(host(to)[0], total);
  };
  for (int i = 0; i < 4; ++i) add(1, 2, a);  // replayed twice
  add(2, 2, a);                              // updated
  EXPECT_EQ(device->graph_counts().updated, 1);
  add(2, 3, a);  // recorded
  add(2, 3, a);  // replayed
  add(2, 3, a, true);
  add(2, 3, a, true);
  add(2, 3, a);  // replayed
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.plain, 3);
  EXPECT_EQ(counts.recorded, 2);
  EXPECT_EQ(counts.replayed, 4);
  EXPECT_EQ(counts.misfits, 4);
  EXPECT_EQ(counts.held, 1);
}

// Work between graphs may read what ran before the whole, and end it by an exception: then what
// comes after it does not run.
TEST_F(RecurringWork, IsEndedByWorkBetweenGraphs) {
  struct Ended {};
  const std::int64_t identities[] = {1};
  float total = 0;
  const auto add = [&](bool ends) {
    kernels::fill(on(), b, n, total);
    repeat(1, [&] {
      device->between_graphs(identities, [this, ends, total] {
        EXPECT_EQ(host(b)[0], total);
        if (ends) throw Ended{};
      });
      kernels::fill(on(), a, n, 1.0f);
      kernels::add_scaled(on(), n, 1.0f, a, c);
    });
    ++total;
  };
  for (const bool ends : {true, false, true, false, true, false, false}) {
    if (ends)
      EXPECT_THROW(add(true), Ended);
    else
      add(false);
    EXPECT_EQ(host(c)[0], total);
  }
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 3);
  EXPECT_EQ(counts.misfits, 0);
}

// Work between graphs would change the graphs that are being launched.
TEST_F(RecurringWork, DoesNotBeginBetweenGraphs) {
  const std::int64_t identities[] = {1};
  const auto add = [&](bool nests) {
    repeat(1, [&] {
      device->between_graphs(identities, [&, nests] {
        if (nests) repeat(2, [&] { kernels::fill(on(), a, n, 1.0f); });
      });
      kernels::fill(on(), b, n, 2.0f);
    });
  };
  for (const bool nests : {true, false, true, false, true, false}) {
    if (nests)
      EXPECT_THROW(add(true), Error);
    else
      add(false);
  }
  EXPECT_EQ(device->graph_counts().recorded, 1);
  EXPECT_EQ(host(b), std::vector<float>(n, 2.0f));
}

// Misfits with uses between them that fit, though work between graphs ends these: still replayed.
TEST_F(RecurringWork, ThatIsEndedStillFits) {
  struct Ended {};
  const std::int64_t identities[] = {1};
  const auto add = [&](float* from, bool ends) {
    kernels::fill(on(), from, n, 1.0f);
    repeat(1, [&] {
      device->between_graphs(identities, [ends] {
        if (ends) throw Ended{};
      });
      kernels::add_scaled(on(), n, 1.0f, from, c);
    });
  };
  for (int i = 0; i < 12; ++i) {
    add(i % 2 == 0 ? a : b, false);
    EXPECT_THROW(add(i % 2 == 0 ? a : b, true), Ended);
  }
  const std::int64_t before = device->graph_counts().replayed;
  add(b, false);
  EXPECT_EQ(device->graph_counts().replayed, before + 1);
  EXPECT_EQ(host(c)[0], 13.0f);
}

TEST_F(RecurringWork, ThatNeverFitsIsLeftAlone) {
  for (int i = 0; i < 24; ++i) {
    repeat(1, [&] {
      for (int k = 0; k < 1 + i % 2; ++k) kernels::fill(on(), a, n, static_cast<float>(i));
    });
    EXPECT_EQ(host(a)[0], static_cast<float>(i));
  }
  const GraphCounts counts = device->graph_counts();
  EXPECT_EQ(counts.misfits, 8);
  EXPECT_EQ(counts.held, 0);
  EXPECT_EQ(counts.nodes, 0);
}

TEST_F(RecurringWork, ThatReadsFromTheDeviceIsNoGraph) {
  for (int i = 0; i < 4; ++i) {
    float read = -1;
    repeat(1, [&] {
      kernels::fill(on(), a, n, static_cast<float>(i));
      device->from_device(&read, a, sizeof(float));
    });
    EXPECT_EQ(read, static_cast<float>(i));
    CudaTimer timer(*device);
    repeat(2, [&] {
      timer.mark();
      kernels::fill(on(), a, n, 1.0f);
      timer.mark();
    });
    EXPECT_EQ(timer.intervals().size(), 1u);
  }
  EXPECT_EQ(device->graph_counts().recorded, 0);
  EXPECT_EQ(device->graph_counts().plain, 8);
}

// Allocations, frees and exceptions during a capture abandon it; later work is not affected.
TEST_F(RecurringWork, SurvivesMemoryThatMoves) {
  bool more = false, fails = false;
  char* memory = nullptr;
  const auto work = [&](float value) {
    repeat(1, [&] {
      kernels::fill(on(), a, n, value);
      if (more && !memory) memory = source->allocate(64);
      if (fails) throw OutOfMemory("planted");
      kernels::add_scaled(on(), n, 1.0f, a, c);
    });
  };
  work(1);
  more = true;
  work(2);  // captured, except for the allocation
  EXPECT_EQ(device->graph_counts().recorded, 0);
  work(3);
  work(4);
  EXPECT_EQ(device->graph_counts().recorded, 1);
  EXPECT_EQ(device->graph_counts().replayed, 1);
  fails = true;
  EXPECT_THROW(work(5), OutOfMemory);
  fails = false;
  work(6);
  EXPECT_EQ(host(c)[0], 1.0f + 2 + 3 + 4 + 6);
  EXPECT_EQ(device->graph_counts().replayed, 2);
  fails = true;
  repeat(2, [&] { kernels::fill(on(), a, n, 0.0f); });
  EXPECT_THROW(repeat(2,
                      [&] {
                        kernels::fill(on(), a, n, 0.0f);
                        throw OutOfMemory("planted while captured");
                      }),
               OutOfMemory);
  source->release(memory);  // no capture is active any more
}

// Work with more host values than its graph reads, whose capture is abandoned: the graph's values
// must still be there, or the graph gone.
TEST_F(RecurringWork, WithMoreValuesKeepsNoGraphThatReadsFreedMemory) {
  bool more = false, moves = false;
  std::vector<char*> memory;
  std::vector<float> values(n), large(200, 1.0f);
  float* const d_large = reinterpret_cast<float*>(source->allocate(large.size() * sizeof(float)));
  const auto work = [&](float value) {
    repeat(1, [&] {
      values[0] = value;
      device->to_device(a, values.data(), n * sizeof(float));
      if (more) device->to_device(d_large, large.data(), large.size() * sizeof(float));
      if (moves) memory.push_back(source->allocate(4096));  // in every attempt
      kernels::add_scaled(on(), n, 1.0f, a, c);
    });
  };
  float total = 0;
  for (int i = 1; i <= 12; ++i) {
    more = i == 4 || i == 5 || i == 9 || i == 10;
    moves = i == 5;
    work(static_cast<float>(i));
    total += static_cast<float>(i);
    ASSERT_EQ(host(c)[0], total) << i;
  }
  for (char* data : memory) source->release(data);
  source->release(reinterpret_cast<char*>(d_large));
}

// The optimizer's table of tensors is uploaded only when it changes, and never in a graph.
TEST_F(RecurringWork, ThatUpdatesOtherTensorsFindsThem) {
  kernels::SgdStep step;
  step.rate = 1;
  for (int i = 0; i < 12; ++i) {
    kernels::fill(on(), b, n, 1.0f);
    kernels::OptimizerSlice slice;
    slice.n = n;
    slice.value = i / 3 % 2 == 0 ? a : c;
    slice.gradient = b;
    repeat(1, [&] { kernels::sgd(on(), &slice, 1, step); });
  }
  EXPECT_EQ(host(a), std::vector<float>(n, -6.0f));
  EXPECT_EQ(host(c), std::vector<float>(n, -6.0f));
}

TEST_F(RecurringWork, IsPlainWithoutGraphs) {
  device->set_graphs(false);
  for (int i = 0; i < 3; ++i) repeat(1, [&] { kernels::fill(on(), a, n, 1.0f); });
  EXPECT_EQ(device->graph_counts().recorded, 0);
}

}  // namespace
}  // namespace nmt::test
