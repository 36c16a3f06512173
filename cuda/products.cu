#include "nmt/kernels/bfloat16.h"

#include "cuda/blas.h"
#include "cuda/elementwise.h"
#include "cuda/vector.h"

namespace nmt::cuda {
namespace {

using kernels::to_bf16;

struct alignas(8) FourBfloat16 {
  Bfloat16 value[4];
};

// `count` matrices of rows that stand ld apart, to bfloat16 without gaps.
void round_matrices(const Cuda& cuda, std::int64_t count, std::int64_t rows, std::int64_t width, const float* from,
                    std::int64_t ld, std::int64_t stride, Bfloat16* to) {
  const std::int64_t size = rows * width;
  if (by_fours(width, from) && ld % 4 == 0 && stride % 4 == 0) {
    const std::int64_t quads = width / 4;
    each(cuda, count * size / 4, [=] __device__(std::int64_t i) {
      const std::int64_t row = i / quads, column = i % quads * 4;
      const Float4 x = load4(from + row / rows * stride + row % rows * ld + column);
      FourBfloat16 rounded;
#pragma unroll
      for (int e = 0; e < 4; ++e) rounded.value[e] = to_bf16(x[e]);
      *reinterpret_cast<FourBfloat16*>(to + row * width + column) = rounded;
    });
  } else {
    each(cuda, count * size, [=] __device__(std::int64_t i) {
      const std::int64_t row = i / width;
      to[i] = to_bf16(from[row / rows * stride + row % rows * ld + i % width]);
    });
  }
}

// An operand in float32 to be rounded: how often it stands there, and its size.
struct Rounding {
  std::int64_t count, rows, width;
  Rounding(const Product& p, const Operand& x, std::int64_t rows_, std::int64_t columns)
      : count(x.stride == 0 ? 1 : p.count), rows(x.transpose ? columns : rows_), width(x.transpose ? rows_ : columns) {}
  // Whole 16 bytes, so that what follows begins at such an address.
  std::int64_t space() const { return divide_up(count * rows * width, 8) * 8; }
  void apply(const Cuda& cuda, Operand& x, Bfloat16* to) const {
    round_matrices(cuda, count, rows, width, x.f32, x.ld, x.stride, to);
    const std::int64_t stride = x.stride == 0 ? 0 : rows * width;
    x = {.transpose = x.transpose, .bf16 = to, .ld = width, .stride = stride};
  }
};

}  // namespace

void multiply(const Cuda& cuda, const Product& product) {
  if (product.m <= 0 || product.n <= 0 || product.count <= 0) return;
  Product p = product;
  CudaDevice::State& state = state_of(cuda);
  if (state.precision == Precision::bfloat16) {
    const Rounding a(p, p.a, p.m, p.k), b(p, p.b, p.k, p.n);
    const std::int64_t space_a = p.a.bf16 ? 0 : a.space(), space_b = p.b.bf16 ? 0 : b.space();
    if (space_a + space_b > 0) {
      const std::size_t bytes = static_cast<std::size_t>(space_a + space_b) * sizeof(Bfloat16);
      auto* const memory = static_cast<Bfloat16*>(state.rounded.get(state, bytes));
      if (space_a > 0) a.apply(cuda, p.a, memory);
      if (space_b > 0) b.apply(cuda, p.b, memory + space_a);
    }
  }
  library_product(cuda, p, state.precision);
}

}  // namespace nmt::cuda
