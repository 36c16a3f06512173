// cuda/blas.h by the CPU's products. Bounds are checked first.

#include "cuda/blas.h"

#include "nmt/core/error.h"
#include "nmt/core/thread_pool.h"
#include "nmt/kernels/gemm.h"

#include "running.h"

namespace nmt::cuda {
namespace {

// The matrices of one operand, rows of `width` that stand `ld` apart, lie in one allocation.
void check_matrix(const char* name, const float* x, std::int64_t rows, std::int64_t width, std::int64_t ld,
                  std::int64_t stride, std::int64_t count) {
  NMT_CHECK(ld >= width, "product: {} has rows of {} that stand {} apart", name, width, ld);
  if (rows <= 0 || width <= 0) return;
  const std::int64_t elements = (count - 1) * stride + (rows - 1) * ld + width;
  NMT_CHECK(emulator::device_region(x).has(x, static_cast<std::size_t>(elements) * sizeof(float)),
            "product: {}, {} floats at {}, does not lie in one piece of device memory", name, elements,
            static_cast<const void*>(x));
}

}  // namespace

void multiply(const Cuda&, const Product& p) {
  if (p.m <= 0 || p.n <= 0 || p.count <= 0) return;
  check_matrix("A", p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda, p.a_stride, p.count);
  check_matrix("B", p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb, p.b_stride, p.count);
  check_matrix("C", p.c, p.m, p.n, p.ldc, p.c_stride, p.count);
  static ThreadPool pool(1);
  const emulator::OpenDeviceMemory open;
  for (std::int64_t i = 0; i < p.count; ++i)
    kernels::gemm(Cpu{&pool}, p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.a + i * p.a_stride, p.lda,
                  p.b + i * p.b_stride, p.ldb, p.beta, p.c + i * p.c_stride, p.ldc);
}

}  // namespace nmt::cuda
