// nmt-bench: measures the kernels on this machine and prints tables with ratios to a multiply-add loop.

#include "nmt/core/error.h"
#include "nmt/core/rng.h"
#include "nmt/core/thread_pool.h"
#include "nmt/kernels/gemm.h"
#include "nmt/kernels/instruction_set.h"
#include "nmt/kernels/peak.h"
#include "tools/bench_kernels.h"
#include "tools/bench.h"
#include "tools/bench_layers.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#ifdef NMT_WITH_OPENBLAS
#include <cblas.h>
extern "C" {
void openblas_set_num_threads(int threads);
char* openblas_get_corename();
}
#endif

namespace {

using namespace nmt;
namespace bench = tools::bench;
using Floats = std::vector<float>;

Floats random_floats(std::int64_t n, std::uint64_t seed) {
  Rng rng(seed);
  Floats x(static_cast<std::size_t>(n));
  for (float& v : x) v = 2 * rng.uniform() - 1;
  return x;
}

struct Shape {
  const char* what;
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
};

#ifdef NMT_WITH_OPENBLAS
constexpr bool with_library = true;
const char* library_kernels() {
  openblas_set_num_threads(1);
  return openblas_get_corename();
}

// The library's product on the pool: each worker calls it single-threaded on its rows or its columns of C.
void library_product(ThreadPool& pool, const Shape& s, const float* a, const float* b, float* c) {
  const auto lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  const bool by_columns = s.n > s.m;
  pool.parallel_for(by_columns ? s.n : s.m, by_columns ? 32 : 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t row = by_columns ? 0 : begin, column = by_columns ? begin : 0;
    const std::int64_t rows = by_columns ? s.m : end - begin, columns = by_columns ? end - begin : s.n;
    cblas_sgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans, s.transpose_b ? CblasTrans : CblasNoTrans,
                static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(s.k), 1.0f,
                a + (s.transpose_a ? row : row * lda), static_cast<int>(lda),
                b + (s.transpose_b ? column * ldb : column), static_cast<int>(ldb), 0.0f, c + row * s.n + column,
                static_cast<int>(s.n));
  });
}
#else
constexpr bool with_library = false;
const char* library_kernels() {
  return "absent";
}
void library_product(ThreadPool&, const Shape&, const float*, const float*, float*) {}
#endif

void products(ThreadPool& pool) {
  const Cpu cpu{&pool};
  fmt::print("threads {}, kernels {}, OpenBLAS kernels {}\n", pool.size(), kernels::instruction_set(),
             library_kernels());
  fmt::print("GFLOP/s; share: of the multiply-add loop on the same threads\n\n");
  fmt::print(
      "| product | M | N | K | OpenBLAS | own, packing included | own, packed | loop | share, packing included | "
      "share, packed |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Shape> shapes;
  for (const auto& [k, n] :
       {std::pair{256, 256}, {256, 768}, {512, 512}, {512, 768}, {1024, 1024}, {1024, 3072}, {256, 8000}, {512, 32000}})
    for (int m : {1, 4, 5, 32, 64, 128, 256, 2048, 4096})
      if (n < 32000 || m <= 256) shapes.push_back({"A B", false, false, m, n, k});
  for (const auto& [k, n] : {std::pair{256, 256}, {256, 768}, {512, 768}, {1024, 1024}, {1024, 3072}})
    shapes.push_back({"A B^T", false, true, 4096, k, n});
  for (const auto& [k, n] : {std::pair{256, 256}, {256, 768}, {512, 768}, {1024, 1024}, {1024, 3072}})
    shapes.push_back({"A^T B", true, false, k, n, 4096});
  for (const Shape& s : shapes) {
    const Floats a = random_floats(s.m * s.k, 1), b = random_floats(s.k * s.n, 2);
    const std::int64_t lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
    Floats c(static_cast<std::size_t>(s.m * s.n)), packed(static_cast<std::size_t>(kernels::packed_size(s.k, s.n)));
    const double gflop = 2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const double loop = 1e-9 * bench::peak_flops(pool);
    const std::string library =
        with_library
            ? fmt::format("{:.1f}", gflop / bench::shortest([&] { library_product(pool, s, a.data(), b.data(), c.data()); }))
            : std::string();
    const double with_packing = gflop / bench::shortest([&] {
                                  kernels::gemm(cpu, s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), lda,
                                                b.data(), ldb, 0.0f, c.data(), s.n);
                                });
    std::string packed_text = "", packed_share = "";
    if (!s.transpose_a) {
      kernels::pack(cpu, s.transpose_b, s.k, s.n, b.data(), ldb, packed.data());
      const double own = gflop / bench::shortest([&] {
                           kernels::gemm_packed(cpu, s.m, s.n, s.k, a.data(), lda, packed.data(), false, c.data(), s.n);
                         });
      packed_text = fmt::format("{:.1f}", own);
      packed_share = fmt::format("{:.0f} %", 100 * own / loop);
    }
    fmt::print("| {} | {} | {} | {} | {} | {:.1f} | {} | {:.0f} | {:.0f} % | {} |\n", s.what, s.m, s.n, s.k, library,
               with_packing, packed_text, loop, 100 * with_packing / loop, packed_share);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = argc > 2 ? std::stoi(argv[2]) : 0;
    ThreadPool pool(threads);
    bench::processor_time = pool.size() == 1;
    const std::string table = argc > 1 ? argv[1] : "";
    if (table == "products") products(pool);
    else if (table == "softmax") tools::bench_softmax(pool);
    else if (table == "pointwise") tools::bench_pointwise(pool);
    else if (table == "layers") tools::bench_layers(pool);
    else if (table == "groups") tools::bench_groups(pool);
    else if (table == "training") tools::bench_training(pool);
    else fail(ExitStatus::usage, "nmt-bench TABLE [THREADS]: table '{}' is none of: products, softmax, pointwise, layers, groups, training", table);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.status());
  }
  return 0;
}
