#include "app/benchmark/bounds.h"

#include "app/benchmark/bench.h"
#include "app/benchmark/peak/peak.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/rounded.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace nmt::app::bench {
namespace {

// Four times the last-level cache. Virtual machines may report the cache of the whole host; GPUs
// have 50 MB (H100, H200) or more.
std::size_t rotation_bytes(Compute& compute, bool quick) {
  if (quick) return std::size_t{1} << 16;
  if (compute.cuda()) return std::size_t{512} << 20;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return 4 * static_cast<std::size_t>(std::clamp(cache, 8l << 20, 64l << 20));
}

}  // namespace

BoundsMeter::BoundsMeter(Compute& compute, Clock& clock, bool quick)
    : compute_(compute),
      clock_(clock),
      quick_(quick),
      rotation_(rotation_bytes(compute, quick)),
      arena_(compute.new_arena()) {}

void BoundsMeter::make_buffers() {
  if (from_) return;
  const Context context = compute_.context(*arena_);
  const std::int64_t floats = static_cast<std::int64_t>(rotation_ / sizeof(float) / 2);
  from_ = context.empty({floats});
  to_ = context.empty({floats});
  for (const Tensor& t : {from_, to_})
    dispatch(context,
             [&](const auto& backend) { kernels::fill(backend, t.f32(), t.elements(), 1.0f); });
}

double BoundsMeter::flops() {
  double best = 0;
  if (compute_.cuda()) {
    const Context context = compute_.context(*arena_);
    const std::int64_t n = quick_ ? 16 : 4096;
    // Of numbers that differ: products of equal ones take less power, and so a GPU runs faster.
    const std::vector<float> numbers = Case::values(n * n, 1);
    const Tensor a = upload(context, numbers, {n, n}), b = upload(context, numbers, {n, n}),
                 c = context.empty({n, n});
    const Rounded left(context, n, n, a.f32()), right(context, n, n, b.f32());
    dispatch(context, [&](const auto& backend) {
      for (int sample = 0; sample < 4; ++sample) {
        clock_.start();
        kernels::gemm(backend, false, false, n, n, n, left.input(), n, right.input(), n, 0.0f,
                      c.f32(), n);
        best = std::max(best,
                        2.0 * static_cast<double>(n * n) * static_cast<double>(n) / clock_.stop());
      }
    });
    return best;
  }
  ThreadPool& pool = compute_.pool();
  for (int sample = 0; sample < (quick_ ? 2 : 12); ++sample) {
    std::int64_t done = 0;
    clock_.start();
    pool.run([&](int worker) {
      const std::int64_t mine = run_fma_loop(quick_ ? 2000 : 100000);
      if (worker == 0) done = mine * pool.size();
    });
    best = std::max(best, static_cast<double>(done) / clock_.stop());
  }
  return best;
}

// memcpy() of large blocks bypasses the caches, and that of small blocks does not. Which is faster
// depends on the machine.
double BoundsMeter::copied() {
  const std::size_t bytes = static_cast<std::size_t>(from_.elements()) * sizeof(float);
  double best = 0;
  for (int sample = 0; sample < (quick_ ? 2 : 4); ++sample) {
    clock_.start();
    if (CudaDevice* device = compute_.cuda())
      device->copy(to_.f32(), from_.f32(), bytes);
    else
      compute_.pool().parallel_for(
          from_.elements(), 4096, [&](std::int64_t begin, std::int64_t end) {
            const std::int64_t piece = sample % 2 == 0 ? end - begin : 16384;
            for (std::int64_t at = begin; at < end; at += piece)
              std::memcpy(to_.f32() + at, from_.f32() + at,
                          static_cast<std::size_t>(std::min(piece, end - at)) * sizeof(float));
          });
    best = std::max(best, 2.0 * static_cast<double>(bytes) / clock_.stop());
  }
  return best;
}

// The fastest number of read streams depends on the machine, too.
double BoundsMeter::read() {
  constexpr int streams[] = {1, 4, 8};
  double best = 0;
  for (int sample = 0; sample < (quick_ ? 3 : 6); ++sample) {
    clock_.start();
    for (const Tensor& t : {from_, to_})
      compute_.pool().parallel_for(t.elements(), 4096, [&](std::int64_t begin, std::int64_t end) {
        float sum;
        run_read_loop(t.f32() + begin, end - begin, streams[sample % 3], 1, &sum);
      });
    best = std::max(best, static_cast<double>(rotation_) / clock_.stop());
  }
  return best;
}

Bounds BoundsMeter::measure() {
  make_buffers();
  if (!compute_.cuda()) return {flops(), copied(), read()};
  if (device_.flops == 0) {
    device_ = {flops(), copied(), 0};
    device_.read = device_.copied;
  }
  return device_;
}

}  // namespace nmt::app::bench
