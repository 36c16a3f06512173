// Would chunks of steps pay on the CPU? One sentence of minGRU (Feng et al. 2024, equation 2: z =
// sigmoid(x0), h = (1 - z) h' + z x1) on one thread, on two threads that share the channels, as
// src/kernels/recurrent/recurrence.cpp does, and on two threads with a chunk of the steps each.
//
//     g++ -O3 -march=native -ffast-math -fopenmp-simd -std=c++20 -pthread -o chunked_scan
//         scripts/bench/units/chunked_scan.cpp && ./chunked_scan        (in one line)
//
// The chunks are written for this unit alone, so their times are the least that a general path
// could take: while a thread computes the first chunk, the other one computes its own from a state
// of 0, with the products of its factors 1 - z; then both add product times state. The backward
// pass does the same with the gradient of the state, from the last step to the first. Times are the
// shortest of 30 runs in µs; both threads wait in loops, so that waking them costs nothing. They
// run on the first two processors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <sched.h>

namespace {

using Row = std::vector<float>;

void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

/// A second thread that waits for work in a loop.
class Helper {
 public:
  Helper() : thread_([this] { loop(); }) {
    while (!is_ready_) std::this_thread::yield();
  }
  ~Helper() {
    stop_ = true;
    thread_.join();
  }
  /// mine() on this thread beside its() on the other.
  template <class Mine>
  void both(Mine&& mine, std::function<void()> its) {
    work_ = std::move(its);
    const int turn = ++given_;
    mine();
    while (done_.load(std::memory_order_acquire) != turn) {
    }
  }

 private:
  void loop() {
    run_on(1);
    is_ready_ = true;
    for (int seen = 0; !stop_;) {
      if (given_.load(std::memory_order_acquire) == seen) continue;
      ++seen;
      work_();
      done_.store(seen, std::memory_order_release);
    }
  }

  std::atomic<int> given_{0}, done_{0};
  std::atomic<bool> is_ready_{false}, stop_{false};
  std::function<void()> work_;
  std::thread thread_;
};

float sigmoid(float x) {
  x = std::min(30.0f, std::max(-30.0f, x)) * 1.44269504f;
  const float whole = std::nearbyint(x), part = x - whole;
  const float power =
      1 + part * (0.693147f + part * (0.240226f + part * (0.0555041f + part * 0.0096181f)));
  const auto bits = (static_cast<std::int32_t>(whole) + 127) << 23;
  const float e = power * __builtin_bit_cast(float, bits);
  return e / (1 + e);
}

struct Scan {
  Scan(std::int64_t width, std::int64_t length)
      : h(width),
        steps(length),
        x(2 * steps * h),
        states(steps * h),
        products(steps * h),
        dh(steps * h),
        carries(steps * h),
        dx(2 * steps * h),
        zeros(h),
        ones(h, 1.0f),
        start(h) {
    for (Row* row : {&x, &dh, &start})
      for (float& value : *row) value = 4.0f * static_cast<float>(std::rand()) / RAND_MAX - 2.0f;
  }

  const float* input(std::int64_t t) const { return x.data() + 2 * t * h; }
  float* at(Row& row, std::int64_t t) { return row.data() + t * h; }

  // The channels [a, b) of the steps [from, to), after the state `before`.
  void forward(std::int64_t from, std::int64_t to, std::int64_t a, std::int64_t b,
               const float* before) {
    for (std::int64_t t = from; t < to; ++t) {
      const float *x0 = input(t), *x1 = x0 + h;
      float* next = at(states, t);
#pragma omp simd
      for (std::int64_t j = a; j < b; ++j) {
        const float z = sigmoid(x0[j]);
        next[j] = (1 - z) * before[j] + z * x1[j];
      }
      before = next;
    }
  }
  // The same from 0, with the products of the factors.
  void forward_from_0(std::int64_t from, std::int64_t to) {
    const float *before = zeros.data(), *product = ones.data();
    for (std::int64_t t = from; t < to; ++t) {
      const float *x0 = input(t), *x1 = x0 + h;
      float *next = at(states, t), *factors = at(products, t);
#pragma omp simd
      for (std::int64_t j = 0; j < h; ++j) {
        const float z = sigmoid(x0[j]);
        next[j] = (1 - z) * before[j] + z * x1[j];
        factors[j] = (1 - z) * product[j];
      }
      before = next, product = factors;
    }
  }
  void add_start(std::int64_t from, std::int64_t to, const float* before) {
    for (std::int64_t t = from; t < to; ++t) {
      float *next = at(states, t), *factors = at(products, t);
#pragma omp simd
      for (std::int64_t j = 0; j < h; ++j) next[j] += factors[j] * before[j];
    }
  }

  // dx of a step whose state has the gradient c; returns that of the state before.
  float step_back(std::int64_t t, std::int64_t j, const float* before, float c) {
    const float *x0 = input(t), *x1 = x0 + h;
    const float z = sigmoid(x0[j]);
    dx[2 * t * h + j] = c * (x1[j] - before[j]) * z * (1 - z);
    dx[(2 * t + 1) * h + j] = c * z;
    return (1 - z) * c;
  }
  const float* before(std::int64_t t) {
    return t == 0 ? start.data() : at(states, t - 1);
  }

  void backward(std::int64_t from, std::int64_t to, std::int64_t a, std::int64_t b, float* carry) {
    for (std::int64_t t = to - 1; t >= from; --t) {
      const float *state = before(t), *dy = at(dh, t);
#pragma omp simd
      for (std::int64_t j = a; j < b; ++j) carry[j] = step_back(t, j, state, dy[j] + carry[j]);
    }
  }
  // The gradient of each state where that after the chunk is 0, and what it is multiplied by.
  void backward_from_0(std::int64_t from, std::int64_t to) {
    Row carry(h), product(h, 1.0f);
    for (std::int64_t t = to - 1; t >= from; --t) {
      const float *x0 = input(t), *dy = at(dh, t);
      float *sum = at(carries, t), *factors = at(products, t);
#pragma omp simd
      for (std::int64_t j = 0; j < h; ++j) {
        const float forget = 1 - sigmoid(x0[j]);
        sum[j] = dy[j] + carry[j];
        factors[j] = product[j];
        carry[j] = forget * sum[j];
        product[j] *= forget;
      }
    }
  }
  void finish_backward(std::int64_t from, std::int64_t to, const float* carry) {
    for (std::int64_t t = from; t < to; ++t) {
      const float *state = before(t), *sum = at(carries, t), *factors = at(products, t);
#pragma omp simd
      for (std::int64_t j = 0; j < h; ++j) step_back(t, j, state, sum[j] + factors[j] * carry[j]);
    }
  }

  std::int64_t h, steps;
  Row x, states, products, dh, carries, dx, zeros, ones, start;
};

double shortest(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 30; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

float difference(const Row& a, const Row& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

void row(Helper& helper, std::int64_t h, std::int64_t steps) {
  Scan s(h, steps);
  Row carry(h);
  const auto clear = [&] { std::fill(carry.begin(), carry.end(), 0.0f); };
  double forward[3], backward[3];
  forward[0] = shortest([&] { s.forward(0, steps, 0, h, s.start.data()); });
  backward[0] = shortest([&] { clear(), s.backward(0, steps, 0, h, carry.data()); });
  const Row states = s.states, dx = s.dx;
  forward[1] = shortest([&] {
    helper.both([&] { s.forward(0, steps, 0, h / 2, s.start.data()); },
                [&] { s.forward(0, steps, h / 2, h, s.start.data()); });
  });
  backward[1] = shortest([&] {
    clear();
    helper.both([&] { s.backward(0, steps, 0, h / 2, carry.data()); },
                [&] { s.backward(0, steps, h / 2, h, carry.data()); });
  });
  forward[2] = backward[2] = 1e9;
  float error = 0;
  for (const double share : {0.4, 0.5, 0.6}) {
    const auto cut = static_cast<std::int64_t>(share * static_cast<double>(steps));
    const std::int64_t late = cut + (steps - cut) / 2, early = cut / 2;
    forward[2] = std::min(forward[2], shortest([&] {
                            helper.both([&] { s.forward(0, cut, 0, h, s.start.data()); },
                                        [&] { s.forward_from_0(cut, steps); });
                            const float* before = s.at(s.states, cut - 1);
                            helper.both([&] { s.add_start(cut, late, before); },
                                        [&] { s.add_start(late, steps, before); });
                          }));
    backward[2] = std::min(backward[2], shortest([&] {
                             clear();
                             helper.both([&] { s.backward(cut, steps, 0, h, carry.data()); },
                                         [&] { s.backward_from_0(0, cut); });
                             helper.both([&] { s.finish_backward(0, early, carry.data()); },
                                         [&] { s.finish_backward(early, cut, carry.data()); });
                           }));
    error = std::max({error, difference(states, s.states), difference(dx, s.dx)});
  }
  std::printf("| %ld | %ld |", static_cast<long>(h), static_cast<long>(steps));
  for (const double* times : {forward, backward})
    std::printf(" %.1f | %.1f | %.1f |", times[0], times[1], times[2]);
  std::printf(" %.0e |\n", static_cast<double>(error));
}

}  // namespace

int main() {
  Helper helper;
  run_on(0);
  std::puts(
      "| H | T | forward, 1 thread | channels | chunks | backward, 1 thread | channels | chunks "
      "| largest difference |\n|---|---|---|---|---|---|---|---|---|");
  for (const std::int64_t h : {32, 64, 128, 256, 512, 1024})
    for (const std::int64_t steps : {128, 512, 1024, 2048, 4096, 8192}) row(helper, h, steps);
}
