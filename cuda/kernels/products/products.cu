#include "cuda/kernels/assign.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/vector.h"
#include "cuda/libraries/blas.h"
#include "kernels/pointwise.h"
#include "kernels/products/product_input.h"

#include <bit>
#include <limits>

namespace nmt::cuda {
namespace {

// The layout of `count` matrices [rows, planes * width] with rows ld elements apart.
struct Layout {
  std::int64_t count, rows, planes, width, ld, plane, stride;
  std::int64_t elements() const { return count * rows * planes * width; }
  // The offset of element i of the matrices without gaps.
  __device__ std::int64_t offset(std::int64_t i) const {
    const std::int64_t column = i % (planes * width), row = i / (planes * width);
    return row / rows * stride + row % rows * ld + column / width * plane + column % width;
  }
};

// Copies the matrices to rows that are to_ld elements apart, four columns of a plane at a time.
// Index: wide enough for a number per four columns.
template <class Index, class T>
void gather(const Cuda& cuda, const Layout& layout, const float* from, T* to, std::int64_t to_ld) {
  const auto rows = static_cast<Index>(layout.rows), planes = static_cast<Index>(layout.planes),
             width = static_cast<Index>(layout.width), groups = (width + 3) / 4;
  const bool loads = (layout.ld | layout.plane | layout.stride) % 4 == 0 && by_fours(4, from),
             stores = planes == 1 || width % 4 == 0;
  const std::int64_t ld = layout.ld, plane_stride = layout.plane, stride = layout.stride;
  each(cuda, layout.count * layout.rows * layout.planes * ((layout.width + 3) / 4),
       [=] __device__(std::int64_t i) {
         const auto n = static_cast<Index>(i);
         const Index group = n % groups, plane = n / groups % planes, row = n / groups / planes,
                     column = 4 * group;
         const float* const x =
             from + row / rows * stride + row % rows * ld + plane * plane_stride + column;
         T* const y = to + row * to_ld + plane * width + column;
         Stored<4, T> four;
         if (loads && column + 4 <= width) {
           const Float4 value = load4(x);
#pragma unroll
           for (int e = 0; e < 4; ++e) assign(four.value[e], value[e]);
         } else {
#pragma unroll
           for (Index e = 0; e < 4; ++e) assign(four.value[e], column + e < width ? x[e] : 0.0f);
         }
         if (stores) {  // rows have room for whole fours
           *reinterpret_cast<Stored<4, T>*>(y) = four;
         } else {
#pragma unroll
           for (Index e = 0; e < 4; ++e)
             if (column + e < width) y[e] = four.value[e];
         }
       });
}
template <class T>
void gather(const Cuda& cuda, const Layout& layout, const float* from, T* to, std::int64_t to_ld) {
  if (layout.elements() < (std::int64_t{1} << 31))
    gather<std::uint32_t>(cuda, layout, from, to, to_ld);
  else
    gather<std::uint64_t>(cuda, layout, from, to, to_ld);
}

// Copies matrices without gaps to their layout, overwriting or adding.
void scatter(const Cuda& cuda, const Layout& layout, const float* from, bool add, float* to) {
  each(cuda, layout.elements(), [=] __device__(std::int64_t i) {
    const std::int64_t offset = layout.offset(i);
    to[offset] = add ? to[offset] + from[i] : from[i];
  });
}

// The parts of the memory begin at multiples of 16 bytes.
std::size_t aligned(std::int64_t elements, std::size_t size) {
  return (static_cast<std::size_t>(elements) * size + 15) / 16 * 16;
}

// An operand that is copied to be rounded or because its planes are not adjacent.
struct Copy {
  bool round, needed;
  Layout layout;
  Copy(const Product& p, const Operand& x, std::int64_t rows, std::int64_t columns,
       bool to_bfloat16)
      : round(to_bfloat16),
        layout{x.stride == 0 ? 1 : p.count,
               x.transpose ? columns : rows,
               x.planes,
               (x.transpose ? rows : columns) / x.planes,
               x.ld,
               x.plane,
               x.stride} {
    const bool apart = x.planes > 1 && x.plane != layout.width;
    needed = apart || (round && !x.bf16);
    NMT_CHECK(!apart || x.f32, "planes of bfloat16 numbers that stand apart");
  }
  // Rows of the copy are a multiple of 16 bytes apart: tensor cores read whole sixteens, and
  // cuBLAS takes slower kernels where rows are not aligned.
  std::int64_t ld() const {
    const std::int64_t whole = round ? 8 : 4;
    return divide_up(layout.planes * layout.width, whole) * whole;
  }
  std::size_t bytes() const {
    return needed ? aligned(layout.count * layout.rows * ld(),
                            round ? sizeof(Bfloat16) : sizeof(float))
                  : 0;
  }
  void apply(const Cuda& cuda, Operand& x, char* to) const {
    x.planes = 1;
    if (!needed) return;
    const std::int64_t stride = x.stride == 0 ? 0 : layout.rows * ld();
    const float* const from = x.f32;
    x = {.transpose = x.transpose, .ld = ld(), .stride = stride};
    if (round) {
      auto* const rounded = reinterpret_cast<Bfloat16*>(to);
      gather(cuda, layout, from, rounded, ld());
      x.bf16 = rounded;
    } else {
      auto* const copied = reinterpret_cast<float*>(to);
      gather(cuda, layout, from, copied, ld());
      x.f32 = copied;
    }
  }
};

// The library takes sizes and strides of rows as integers of 32 bits.
void check_sizes(const Product& p) {
  constexpr std::int64_t max_size = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t size : {p.m, p.n, p.k, p.count, p.a.ld, p.b.ld, p.ldc})
    NMT_CHECK(size <= max_size,
              "{} products [{},{}] x [{},{}] with rows {}, {} and {} elements apart: each of these "
              "numbers is at most {}",
              p.count, p.m, p.k, p.k, p.n, p.a.ld, p.b.ld, p.ldc, max_size);
}

}  // namespace

void multiply(const Cuda& cuda, const Product& product) {
  if (product.m <= 0 || product.n <= 0 || product.count <= 0) return;
  Product p = product;
  CudaDevice::State& state = state_of(cuda);
  const bool round = state.precision == Precision::bfloat16;
  const Copy a(p, p.a, p.m, p.k, round), b(p, p.b, p.k, p.n, round);
  const Layout c{p.count, p.m, p.c_planes, p.n / p.c_planes, p.ldc, p.c_plane, p.c_stride};
  const bool apart = p.c_planes > 1 && p.c_plane != c.width;
  NMT_CHECK(!p.c_rounded || (round && !apart && !p.bias && p.beta == 0.0f),
            "a product whose result is rounded adds nothing to it");
  const std::size_t bytes =
      a.bytes() + b.bytes() + (apart ? aligned(c.elements(), sizeof(float)) : 0);
  char* const memory = bytes > 0 ? static_cast<char*>(state.rounded.get(state, bytes)) : nullptr;
  a.apply(cuda, p.a, memory);
  b.apply(cuda, p.b, memory + a.bytes());
  if (apart) {
    p.c = reinterpret_cast<float*>(memory + a.bytes() + b.bytes());
    p.ldc = p.n;
    p.c_stride = p.m * p.n;
    p.beta = 0.0f;
  }
  check_sizes(p);
  const auto operand = [](const Operand& x) {
    return x.f32 ? as_integer(x.f32) : as_integer(x.bf16);
  };
  queue(cuda,
        {product_call,
         p.m,
         p.n,
         p.k,
         p.count,
         p.a.transpose,
         operand(p.a),
         p.a.ld,
         p.a.stride,
         p.a.bf16 != nullptr,
         p.b.transpose,
         operand(p.b),
         p.b.ld,
         p.b.stride,
         std::bit_cast<std::int32_t>(p.beta),
         as_integer(p.c),
         as_integer(p.c_rounded),
         p.ldc,
         p.c_stride,
         as_integer(p.bias)},
        [&] {
          if (p.bias && library_product_with_bias(cuda, p, state.precision)) return;
          library_product(cuda, p, state.precision);
          if (p.bias) kernels::add_bias(cuda, p.m, p.n, p.c, p.bias, p.c);
        });
  if (apart) scatter(cuda, c, p.c, product.beta != 0.0f, product.c);
}

}  // namespace nmt::cuda

namespace nmt::kernels {

bool reads_rounded(const Cuda& cuda) {
  return cuda::state_of(cuda).precision == Precision::bfloat16;
}

void round_matrix(const Cuda& cuda, std::int64_t rows, std::int64_t columns, const float* x,
                  Bfloat16* y) {
  cuda::gather(cuda, {1, rows, 1, columns, columns, 0, 0}, x, y, rounded_stride(columns));
}

}  // namespace nmt::kernels
