#include "app/benchmark/tables/tables.h"
#include "kernels/products/int8/gemm_int8.h"

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

// A row of k values, of which `zeros` per cent are zero, times `matrices` matrices [k,n] in turn.
class ZerosCase {
 public:
  ZerosCase(Case& a_case, int zeros, int matrices) : case_(a_case) {
    row_ = Case::values(k, 1);
    const std::vector<float> lots = Case::values(k, 2);
    for (std::int64_t i = 0; i < k; ++i)
      if (lots[static_cast<std::size_t>(i)] < 0.02f * static_cast<float>(zeros) - 1)
        row_[static_cast<std::size_t>(i)] = 0;
    const Context& context = case_.context();
    const Cpu& cpu = context.cpu;
    for (int m = 0; m < matrices; ++m) {
      const std::vector<float> b = Case::values(k * n, static_cast<std::uint64_t>(3 + m));
      packed_.push_back(context.empty({kernels::packed_int8_size(k, n)}, Dtype::i8));
      kernels::pack_int8(cpu, false, k, n, b.data(), n, bytes(packed_.back()));
      if (kernels::int8_rows_size(k, n) == 0) continue;
      rows_.push_back(context.empty({kernels::int8_rows_size(k, n)}, Dtype::i8));
      kernels::copy_int8_rows(cpu, k, n, bytes(packed_.back()), bytes(rows_.back()));
    }
  }
  void run() {
    const std::vector<float> all = multiply(false), skipped = multiply(true);
    for (std::size_t j = 0; j < all.size(); ++j)
      case_.compare(fmt::format("column {}", j), skipped[j], all[j], 1, 0);
    const double seconds = case_.time([&] { multiply(true); });
    case_.extra("over reading all weights", case_.aside([&] { multiply(false); }) / seconds);
  }

 private:
  static constexpr std::int64_t k = 1536, n = 256;  // of configs/students/tiny11.yaml
  static std::byte* bytes(const Tensor& t) {
    return reinterpret_cast<std::byte*>(t.data<std::int8_t>());
  }
  std::vector<float> multiply(bool skip) const {
    std::vector<float> out(n);
    for (std::size_t m = 0; m < packed_.size(); ++m)
      kernels::gemm_int8(case_.context().cpu, 1, n, k, row_.data(), k, bytes(packed_[m]), false,
                         out.data(), n, nullptr,
                         skip && !rows_.empty() ? bytes(rows_[m]) : nullptr);
    return out;
  }

  Case& case_;
  std::vector<float> row_;
  std::vector<Tensor> packed_, rows_;
};

}  // namespace

void zeros(Bench& bench) {
  if (bench.compute().cuda()) return;
  for (const int matrices : {1, 8})  // in the second-level cache, or beyond it
    for (const int zeros : {10, 25, 40, 50, 75, 90})
      bench.row("zeros", fmt::format("{} % of a row, {} matrices", zeros, matrices),
                [&](Case& c) { ZerosCase(c, zeros, matrices).run(); });
}

}  // namespace nmt::app::bench
