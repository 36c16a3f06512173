#include "bench_kernels.h"

#include "nmt/core/rng.h"
#include "nmt/kernels/layer_norm.h"
#include "nmt/kernels/optimizer.h"
#include "nmt/kernels/pointwise.h"
#include "nmt/kernels/softmax_loss.h"

#include <cstdio>
#include <vector>

#include "bench.h"
#include <fmt/format.h>

namespace nmt::tools {
namespace {

using Floats = std::vector<float>;

Floats random_floats(std::int64_t n, std::uint64_t seed) {
  Rng rng(seed);
  Floats x(static_cast<std::size_t>(n));
  for (float& v : x) v = 2 * rng.uniform() - 1;
  return x;
}

}  // namespace

void bench_softmax(ThreadPool& pool) {
  const Cpu cpu{&pool};
  fmt::print(
      "Softmax, cross-entropy and gradients, threads {}; share: of the multiply-add loop, products counted only\n\n",
      pool.size());
  fmt::print(
      "| R | E | V | ms | GFLOP/s | loop | share | ms without gradients | share "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  struct Shape {
    std::int64_t rows, width, vocabulary;
  };
  for (const auto& [rows, width, vocabulary] :
       {Shape{4096, 256, 8000}, Shape{1024, 256, 8000}, Shape{4096, 512, 8000}, Shape{1024, 512, 32000}}) {
    const Floats x = random_floats(rows * width, 1), table = random_floats(vocabulary * width, 2);
    std::vector<std::int32_t> target;
    for (std::int64_t r = 0; r < rows; ++r) target.push_back(static_cast<std::int32_t>(r * 7919 % vocabulary));
    Floats dx(x.size()), dtable(table.size()),
        scratch(static_cast<std::size_t>(kernels::softmax_loss_scratch(cpu, rows, width, vocabulary)));
    double cross_entropy = 0, smoothed = 0;
    kernels::SoftmaxLoss loss;
    loss.rows = rows;
    loss.width = width;
    loss.vocabulary = vocabulary;
    loss.x = x.data();
    loss.table = table.data();
    loss.target = target.data();
    loss.smoothing = 0.1f;
    loss.dx = dx.data();
    loss.dtable = dtable.data();
    loss.cross_entropy = &cross_entropy;
    loss.smoothed = &smoothed;
    loss.scratch = scratch.data();
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(width) * static_cast<double>(vocabulary);
    const double loop = bench::peak_flops(pool);
    const double whole = bench::shortest([&] { kernels::softmax_loss(cpu, loss); }, 1.0);
    loss.dx = loss.dtable = nullptr;
    const double forward = bench::shortest([&] { kernels::softmax_loss(cpu, loss); }, 0.5);
    fmt::print("| {} | {} | {} | {:.1f} | {:.0f} | {:.0f} | {:.0f} % | {:.1f} | {:.0f} % |\n", rows, width, vocabulary,
               1e3 * whole, 3e-9 * flops / whole, 1e-9 * loop, 300 * flops / whole / loop, 1e3 * forward,
               100 * flops / forward / loop);
    std::fflush(stdout);
  }
}

void bench_pointwise(ThreadPool& pool) {
  const Cpu cpu{&pool};
  const std::int64_t rows = 4096, width = 1024, n = rows * width;
  Floats x = random_floats(n, 1), y = random_floats(n, 2), z = random_floats(n, 3), m(x.size()), v(x.size()),
         average(x.size());
  const Floats gain = random_floats(width, 4);
  Floats rstd(static_cast<std::size_t>(rows)), dgain(gain.size()), dbias(gain.size());
  const double read = static_cast<double>(4 * n) / bench::shortest([&] {
                        pool.parallel_for(n, 16, [&](std::int64_t begin, std::int64_t end) {
                          float sum;
                          kernels::read_loop(x.data() + begin, end - begin, &sum);
                        });
                      });
  fmt::print(
      "{} floats, threads {}; reading loop {:.1f} GB/s. Bytes: those that must move, a written line counted once\n\n",
      n, pool.size(), 1e-9 * read);
  fmt::print("| kernel | ms | GB/s | of the reading loop |\n|---|---|---|---|\n");
  const auto row = [&](const char* name, double arrays, auto&& body) {
    const double seconds = bench::shortest(body, 0.3), rate = arrays * 4 * static_cast<double>(n) / seconds;
    fmt::print("| {} | {:.2f} | {:.1f} | {:.0f} % |\n", name, 1e3 * seconds, 1e-9 * rate, 100 * rate / read);
    std::fflush(stdout);
  };
  row("fill", 1, [&] { kernels::fill(cpu, z.data(), n, 0.5f); });
  row("add", 3, [&] { kernels::add(cpu, n, x.data(), y.data(), z.data()); });
  row("add_scaled", 3, [&] { kernels::add_scaled(cpu, n, 0.5f, x.data(), z.data()); });
  row("tanh_forward", 2, [&] { kernels::tanh_forward(cpu, n, x.data(), z.data()); });
  row("tanh_backward", 4, [&] { kernels::tanh_backward(cpu, n, x.data(), y.data(), z.data()); });
  row("dropout", 2, [&] { kernels::dropout(cpu, n, 0.1f, 1, 2, x.data(), z.data()); });
  row("add_bias", 2, [&] { kernels::add_bias(cpu, rows, width, x.data(), gain.data(), z.data()); });
  row("sum_rows", 1, [&] { kernels::sum_rows(cpu, rows, width, x.data(), dbias.data()); });
  row("layer_norm", 3, [&] {
    kernels::layer_norm(cpu, rows, 1, width, x.data(), gain.data(), nullptr, z.data(), y.data(), rstd.data());
  });
  row("layer_norm_backward", 3, [&] {
    kernels::layer_norm_backward(cpu, rows, 1, width, x.data(), y.data(), rstd.data(), gain.data(), z.data(),
                                 dgain.data(), dbias.data());
  });
  const kernels::OptimizerSlice slice = {n, x.data(), y.data(), m.data(), v.data(), average.data()};
  kernels::AdamStep step;
  step.rate = 1e-3f;
  step.epsilon = 1e-8f;
  row("gradient_norm_squared", 1, [&] { (void)kernels::gradient_norm_squared(cpu, &slice, 1); });
  row("adam", 8, [&] { kernels::adam(cpu, &slice, 1, step); });
  step.smoothing = 1e-3f;
  row("adam with average", 10, [&] { kernels::adam(cpu, &slice, 1, step); });
}

}  // namespace nmt::tools
