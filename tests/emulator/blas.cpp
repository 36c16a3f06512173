// The library calls of cuda/libraries/blas.h computed by the CPU's products, with inputs rounded as
// a GPU rounds them and bounds checked.

#include "cuda/libraries/blas.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/state.h"
#include "dry/dry_run.h"
#include "kernels/products/gemm.h"
#include "running.h"

#include <bit>
#include <cmath>
#include <vector>

namespace nmt::cuda {
namespace {

// Checks that the matrices of an operand, rows of `width` at a distance of `ld`, are in one
// allocation.
template <class T>
void check_matrix(const char* name, const T* x, std::int64_t rows, std::int64_t width,
                  std::int64_t ld, std::int64_t stride, std::int64_t count) {
  NMT_CHECK(ld >= width, "product: {} has rows of {} that stand {} apart", name, width, ld);
  if (rows <= 0 || width <= 0) return;
  const std::int64_t elements = (count - 1) * stride + (rows - 1) * ld + width;
  NMT_CHECK(emulator::device_region(x).has(x, static_cast<std::size_t>(elements) * sizeof(T)),
            "product: {}, {} elements at {}, does not lie in one piece of device memory", name,
            elements, static_cast<const void*>(x));
}

// Rounds to nearest with 10 bits of fraction: the TF32 input of tensor cores.
float to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::isfinite(x) ? std::bit_cast<float>((bits + 0x1000u) & ~0x1FFFu) : x;
}

// A matrix of an operand in float32.
class Values {
 public:
  Values(const Operand& x, std::int64_t product, std::int64_t rows, std::int64_t width,
         Precision precision) {
    if (x.f32 && precision != Precision::tf32) {
      data = x.f32 + product * x.stride;
      ld = x.ld;
      return;
    }
    values_.resize(static_cast<std::size_t>(rows * width));
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const std::int64_t at = product * x.stride + i / width * x.ld + i % width;
      values_[static_cast<std::size_t>(i)] =
          x.bf16 ? kernels::from_bf16(x.bf16[at]) : to_tf32(x.f32[at]);
    }
    data = values_.data();
    ld = width;
  }
  const float* data = nullptr;
  std::int64_t ld = 0;

 private:
  std::vector<float> values_;
};

// Each matrix is read or written once.
void count_product(const Product& p) {
  const auto elements = [&](std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    return static_cast<double>(rows * columns * (stride == 0 ? 1 : p.count));
  };
  const auto bytes_of = [](const Operand& x) { return x.bf16 ? 2.0 : 4.0; };
  const double a = elements(p.m, p.k, p.a.stride) * bytes_of(p.a),
               b = elements(p.k, p.n, p.b.stride) * bytes_of(p.b),
               c = (p.c_rounded ? 2.0 : 4.0) * static_cast<double>(p.m * p.n * p.count);
  emulator::count("product", {1, a + b + (p.beta != 0.0f ? c : 0.0), c,
                              2.0 * static_cast<double>(p.m * p.n * p.k * p.count)});
}

}  // namespace

static void multiply_now(const Product& p, Precision precision) {
  NMT_CHECK(!p.a.bf16 == !p.b.bf16, "a product of float32 and bfloat16");
  const std::int64_t a_rows = p.a.transpose ? p.k : p.m, a_width = p.a.transpose ? p.m : p.k;
  const std::int64_t b_rows = p.b.transpose ? p.n : p.k, b_width = p.b.transpose ? p.k : p.n;
  const auto check_operand = [&](const char* name, const Operand& x, std::int64_t rows,
                                 std::int64_t width) {
    if (x.bf16)
      check_matrix(name, x.bf16, rows, width, x.ld, x.stride, p.count);
    else
      check_matrix(name, x.f32, rows, width, x.ld, x.stride, p.count);
  };
  check_operand("A", p.a, a_rows, a_width);
  check_operand("B", p.b, b_rows, b_width);
  NMT_CHECK(!p.c_rounded || (p.beta == 0.0f && p.a.bf16), "product: a rounded C of float32 inputs");
  if (p.c_rounded)
    check_matrix("C", p.c_rounded, p.m, p.n, p.ldc, p.c_stride, p.count);
  else
    check_matrix("C", p.c, p.m, p.n, p.ldc, p.c_stride, p.count);
  if (emulator::is_dry()) count_product(p);
  if (emulator::is_sampled()) return;
  static ThreadPool pool(1);
  const emulator::OpenDeviceMemory open;
  for (std::int64_t i = 0; i < p.count; ++i) {
    const Values a(p.a, i, a_rows, a_width, precision), b(p.b, i, b_rows, b_width, precision);
    std::vector<float> exact(static_cast<std::size_t>(p.c_rounded ? p.m * p.n : 0));
    kernels::gemm(Cpu{&pool}, p.a.transpose, p.b.transpose, p.m, p.n, p.k, a.data, a.ld, b.data,
                  b.ld, p.beta, p.c_rounded ? exact.data() : p.c + i * p.c_stride,
                  p.c_rounded ? p.n : p.ldc);
    for (std::int64_t e = 0; e < std::ssize(exact); ++e)
      p.c_rounded[i * p.c_stride + e / p.n * p.ldc + e % p.n] =
          kernels::to_bf16(exact[static_cast<std::size_t>(e)]);
  }
}

void library_product(const Cuda& cuda, const Product& p, Precision precision) {
  const cudaStream_t stream = state_of(cuda).stream;
  for (const Operand* x : {&p.a, &p.b})
    emulator::counters().unaligned_operands += x->bf16 && x->ld % 8 != 0;
  if (!emulator::is_deferred(stream)) return multiply_now(p, precision);
  NMT_CUDA_CHECK(emulator::defer(stream, "product", [=] {
    multiply_now(p, precision);
    return cudaSuccess;
  }));
}

// Rows that are not a multiple of 16 bytes are refused, so that tests cover both paths.
bool library_product_with_bias(const Cuda& cuda, const Product& p, Precision precision) {
  NMT_CHECK(p.count == 1 && p.beta == 0.0f && p.ldc == p.n,
            "product: a bias for {} products with beta {}, rows of {} that stand {} apart", p.count,
            p.beta, p.n, p.ldc);
  check_matrix("the bias", p.bias, 1, p.n, p.n, 0, 1);
  if (p.n % 4 != 0) return false;
  const auto multiply = [=] {
    multiply_now(p, precision);
    if (emulator::is_sampled()) return cudaSuccess;
    const emulator::OpenDeviceMemory open;
    for (std::int64_t i = 0; i < p.m * p.n; ++i) p.c[i] += p.bias[i % p.n];
    return cudaSuccess;
  };
  const cudaStream_t stream = state_of(cuda).stream;
  NMT_CUDA_CHECK(emulator::is_deferred(stream)
                     ? emulator::defer(stream, "product with a bias", multiply)
                     : multiply());
  return true;
}

}  // namespace nmt::cuda
