#pragma once

// A fixture for tests of ops and models: a context with its pool and arena, and random tensors.

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "core/threads/thread_pool.h"

#include <algorithm>
#include <vector>

namespace nmt::test {

struct Engine {
  explicit Engine(int threads = 2) : pool(threads) {
    context.arena = &arena;
    context.cpu.pool = &pool;
  }
  ThreadPool pool;
  Arena arena;
  Context context;
  Rng rng{42};

  Tensor random(Shape shape, float scale = 1.0f) {
    Tensor t = context.empty(shape);
    for (std::int64_t i = 0; i < t.elements(); ++i) t.f32()[i] = scale * rng.normal();
    return t;
  }
  Tensor ints(const std::vector<std::int32_t>& values, Shape shape) {
    Tensor t = context.empty(shape, Dtype::i32);
    std::copy(values.begin(), values.end(), t.data<std::int32_t>());
    return t;
  }
  /// A parameter with random values around `center`, not part of a model.
  Parameter parameter(const std::string& name, Shape shape, float scale = 1.0f,
                      float center = 0.0f) {
    Parameter p;
    p.name = name;
    p.shape = shape;
    p.value = random(shape, scale);
    for (std::int64_t i = 0; i < shape.elements(); ++i) p.value.f32()[i] += center;
    p.gradient = context.empty(shape);
    std::fill_n(p.gradient.f32(), shape.elements(), 0.0f);
    return p;
  }
};

inline std::vector<double> doubles(const Tensor& t) {
  return {t.f32(), t.f32() + t.elements()};
}

}  // namespace nmt::test
