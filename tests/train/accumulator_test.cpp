#include "train/optimization/accumulator.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "model/model.h"

#include <cmath>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

/// A heap of so many bytes.
struct SmallHeap : MemorySource {
  explicit SmallHeap(std::size_t& most_) : most(most_) {}
  char* allocate(std::size_t bytes) override {
    if (used + bytes > most) throw std::bad_alloc();
    used += bytes;
    char* data = static_cast<char*>(std::aligned_alloc(64, bytes + 64));
    *reinterpret_cast<std::size_t*>(data) = bytes;
    return data + 64;
  }
  void release(char* data) noexcept override {
    used -= *reinterpret_cast<std::size_t*>(data - 64);
    std::free(data - 64);
  }
  std::size_t& most;
  std::size_t used = 0;
};

struct AccumulatorTest : testing::Test {
  AccumulatorTest() {
    context.arena = &arena;
    context.cpu.pool = &pool;
    spec.dim_emb = spec.dim_rnn = 16;
    spec.enc_depth = spec.dec_depth = 2;
    spec.enc_cell = spec.dec_cell = "gru";
    spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.2;
    Rng rng(5);
    for (int b = 0; b < 2; ++b) {
      std::vector<Ids> sources(31), targets(31);
      std::vector<const Ids*> s, t;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        for (Ids* ids : {&sources[i], &targets[i]})
          for (std::uint64_t k = rng.below(12); k > 0; --k)
            ids->push_back(static_cast<std::int32_t>(3 + rng.below(40)));
        s.push_back(&sources[i]);
        t.push_back(&targets[i]);
      }
      pieces.push_back({make_batch(s, t, 1, 2), {0.1f, 1, static_cast<std::uint64_t>(b)}});
    }
    model.emplace(spec, 43, 43, context, 3);
    losses = context.empty({2}, Dtype::f64);
    clear();
  }
  void clear() {
    for (Parameter& p : model->parameters().all())
      std::fill_n(p.gradient.f32(), p.shape.elements(), 0.0f);
    std::fill_n(losses.data<double>(), 2, 0.0);
  }
  BatchLoss add(Accumulator& accumulator) {
    const std::int64_t tokens = accumulator.add(pieces);
    return {losses.data<double>()[0], losses.data<double>()[1], tokens};
  }
  std::vector<float> gradients() {
    std::vector<float> all;
    for (Parameter& p : model->parameters().all())
      all.insert(all.end(), p.gradient.f32(), p.gradient.f32() + p.shape.elements());
    return all;
  }
  Accumulator accumulator() {
    return Accumulator(
        *model, losses, [this] { clear(); }, [this](const Batch&) { ++told; });
  }

  std::size_t most = std::size_t{1} << 30;
  ThreadPool pool{2};
  Arena arena{4096, std::make_unique<SmallHeap>(most)};
  Context context;
  ModelSpec spec;
  Tensor losses;
  std::vector<Accumulator::Piece> pieces;
  std::optional<Model> model;
  int told = 0;
};

TEST_F(AccumulatorTest, OldGradientsAreGoneWithAndWithoutSentences) {
  Accumulator own = accumulator();
  add(own);
  const std::vector<float> expected = gradients();
  const auto make_old = [&] {
    for (Parameter& p : model->parameters().all()) {
      p.gradient_is_old = p.gradient_starts_with_product;
      std::fill_n(p.gradient.f32(), p.shape.elements(), p.gradient_is_old ? NAN : 0.0f);
    }
  };
  make_old();
  add(own);
  EXPECT_EQ(gradients(), expected);
  make_old();
  pieces.clear();  // as on a rank without sentences
  EXPECT_EQ(own.add(pieces), 0);
  EXPECT_EQ(gradients(), std::vector<float>(expected.size(), 0.0f));
}

TEST_F(AccumulatorTest, HalvesSumToTheWhole) {
  const std::size_t resident = arena.statistics().reserved;
  Accumulator at_once = accumulator();
  const BatchLoss whole = add(at_once);
  const std::vector<float> expected = gradients();
  const std::size_t needed = arena.statistics().reserved - resident;
  EXPECT_EQ(told, 0);
  for (const double share : {0.7, 0.4, 0.2}) {
    clear();
    arena.trim();
    told = 0;
    most = resident + static_cast<std::size_t>(share * static_cast<double>(needed));
    Accumulator parts = accumulator();
    const BatchLoss sum = add(parts);
    EXPECT_EQ(told, 1) << share;
    EXPECT_EQ(sum.tokens, whole.tokens);
    EXPECT_NEAR(sum.cross_entropy, whole.cross_entropy, 1e-6 * whole.cross_entropy);
    EXPECT_NEAR(sum.smoothed, whole.smoothed, 1e-6 * whole.smoothed);
    const std::vector<float> found = gradients();
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-5) << share;
    clear();
    parts.add(pieces);
    EXPECT_EQ(told, 1) << "said once";
  }
}

TEST_F(AccumulatorTest, APairThatDoesNotFitIsAnError) {
  most = arena.statistics().reserved;
  try {
    accumulator().add(pieces);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::memory);
    EXPECT_NE(std::string(error.what()).find("single pair"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nmt::train
