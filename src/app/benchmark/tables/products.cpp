#include "app/benchmark/blas.h"
#include "app/benchmark/tables/tables.h"
#include "kernels/products/bfloat16.h"
#include "kernels/products/gemm.h"
#include "kernels/products/int8/gemm_int8.h"

#include <array>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

struct Shape {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  const char* kind() const { return transpose_a ? "A^T B" : transpose_b ? "A B^T" : "A B"; }
};

// [K,N] of the weight matrices of the shipped configs.
constexpr std::pair<std::int64_t, std::int64_t> matrices[] = {
    {256, 256},   {256, 768},   {512, 256},   {512, 512},   {512, 768},
    {256, 4000},  {256, 8000},   // multi30k, toy, demo, compare
    {256, 1024},  {256, 25000},  // iwslt14-de-en-group
    {620, 1000},  {1000, 1000}, {2000, 2000}, {3620, 620},  {620, 40000},   // wmt14-*-atr
    {512, 4096},  {512, 30000},                                             // wmt14-en-de-group
    {1024, 1024}, {1024, 3072}, {1024, 4096}, {2048, 1024}, {1024, 32000},  // wmt14-en-de-lrn, gnmt
    {512, 32000},
};
constexpr std::int64_t decoding_rows[] = {1, 4, 5, 32, 64, 128, 512},
                       training_rows[] = {2048, 4096};

std::vector<Shape> shapes(bool quick) {
  if (quick) return {{false, false, 3, 20, 17}, {false, true, 5, 17, 20}, {true, false, 17, 20, 5}};
  std::vector<Shape> all;
  for (const auto& [k, n] : matrices) {
    const bool table =
        n > 4096;  // an output matrix; in training, the softmax multiplies it in pieces
    for (const std::int64_t m : decoding_rows) all.push_back({false, false, m, n, k});
    if (table) continue;
    for (const std::int64_t m : training_rows) all.push_back({false, false, m, n, k});
    all.push_back({false, true, 4096, k, n});
    all.push_back({true, false, k, n, 4096});
  }
  return all;
}

// Compares some elements of C with double precision. `error`: as a part of the sum of the absolute
// products.
void check(const Case& c, const Shape& s, const std::vector<float>& a, const std::vector<float>& b,
           const Tensor& out, double error = 2e-6) {
  const std::vector<float> values = c.read(out);
  for (int sample = 0; sample < 48; ++sample) {
    const std::int64_t i = sample * 7919 % s.m, j = sample * 104729 % s.n;
    double sum = 0, size = 0;
    for (std::int64_t p = 0; p < s.k; ++p) {
      const double x = a[static_cast<std::size_t>(s.transpose_a ? p * s.m + i : i * s.k + p)];
      const double y = b[static_cast<std::size_t>(s.transpose_b ? j * s.k + p : p * s.n + j)];
      sum += x * y;
      size += std::abs(x * y);
    }
    c.compare(fmt::format("C[{},{}]", i, j), values[static_cast<std::size_t>(i * s.n + j)], sum,
              size, error);
  }
}

void time(Case& c, const Shape& s, bool packed) {
  std::vector<float> a_host = Case::values(s.m * s.k, 1), b_host = Case::values(s.k * s.n, 2);
  const Precision precision = c.bench().compute().precision();
  if (precision == Precision::bfloat16 || precision == Precision::tf32)
    // Values that products need not round.
    for (std::vector<float>* values : {&a_host, &b_host})
      for (float& x : *values) x = kernels::from_bf16(kernels::to_bf16(x));
  const Tensor a = upload(c.training(), a_host, {s.m * s.k}),
               b = upload(c.training(), b_host, {s.k * s.n});
  const Tensor out = c.zeros(s.m * s.n);
  const std::int64_t lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  const double mkn = static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
  c.work(2 * mkn, 0);
  Tensor panels;
  const auto run_in = [&](const Context& context) {
    dispatch(context, [&](const auto& backend) {
      if (packed)
        kernels::gemm_packed(backend, s.m, s.n, s.k, a.f32(), lda, panels.f32(), false, out.f32(),
                             s.n);
      else
        kernels::gemm(backend, s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.f32(), lda, b.f32(),
                      ldb, 0.0f, out.f32(), s.n);
    });
  };
  if (packed) {
    panels = c.training().empty({kernels::packed_size(c.training().cpu, s.k, s.n)});
    dispatch(c.training(), [&](const auto& backend) {
      kernels::pack(backend, s.transpose_b, s.k, s.n, b.f32(), ldb, panels.f32());
    });
  }
  const Context own = packed ? c.training() : c.with_own_products();  // panels are of one kind
  run_in(own);
  check(c, s, a_host, b_host, out);
  run_in(c.training());
  check(c, s, a_host, b_host, out);
  const double seconds = c.time([&] { run_in(c.training()); });
  if (!packed && c.bench().products() && !c.bench().products()->rounds_inputs())
    c.extra("own tiles, GFLOP/s", 2e-9 * mkn / c.aside([&] { run_in(own); }));
  const Blas& blas = c.bench().blas();
  if (packed || c.bench().compute().cuda() || !blas.found()) return;
  const double rival = c.aside([&] {
    blas.multiply(c.bench().compute().pool(), {s.transpose_a, s.transpose_b, s.m, s.n, s.k},
                  a.f32(), b.f32(), out.f32());
  });
  c.extra(blas.name() + ", GFLOP/s", 2e-9 * mkn / rival);
  c.extra("over " + blas.name(), rival / seconds);
}

// The same with weights in int8, as in decoding.
void time_int8(Case& c, const Shape& s) {
  const std::vector<float> a_host = Case::values(s.m * s.k, 1), b = Case::values(s.k * s.n, 2);
  const Context& context = c.context();
  const Tensor a = upload(context, a_host, {s.m * s.k}), out = c.zeros(s.m * s.n),
               packed = context.empty({kernels::packed_int8_size(s.k, s.n)}, Dtype::i8);
  auto* const panels = reinterpret_cast<std::byte*>(packed.data<std::int8_t>());
  kernels::pack_int8(context.cpu, s.transpose_b, s.k, s.n, b.data(), s.transpose_b ? s.k : s.n,
                     panels);
  const auto run = [&] {
    kernels::gemm_int8(context.cpu, s.m, s.n, s.k, a.f32(), s.k, panels, false, out.f32(), s.n);
  };
  run();
  // A step is 1/127 of the largest value, and the mean of the absolute values is half of that.
  check(c, s, a_host, b, out, 0.02);
  const double mkn = static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
  c.work(2 * mkn, 0);
  c.time(run);
}

}  // namespace

void products(Bench& bench) {
  const bool int8 = bench.compute().precision() == Precision::int8;
  for (const bool packed : {false, true})
    for (const Shape& s : shapes(bench.options().quick)) {
      if (packed && s.transpose_a) continue;
      if (int8 && !packed) continue;  // int8 is for weights, which are packed
      const std::string table = packed ? "products packed before" : "products";
      bench.row(table, fmt::format("{} M {} N {} K {}", s.kind(), s.m, s.n, s.k),
                [&](Case& c) { int8 ? time_int8(c, s) : time(c, s, packed); });
    }
}

}  // namespace nmt::app::bench
