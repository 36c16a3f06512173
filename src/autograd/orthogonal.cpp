#include "autograd/orthogonal.h"

#include "core/threads/thread_pool.h"
#include "kernels/products/gemm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nmt {
namespace {

constexpr std::int64_t block =
    64;  // vectors that one product orthogonalizes against all earlier ones

double dot(const float* a, const float* b, std::int64_t n) {
  double sums[8]{};  // eight independent sums, which the compiler vectorizes
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8)
    for (int lane = 0; lane < 8; ++lane)
      sums[lane] += static_cast<double>(a[k + lane]) * b[k + lane];
  for (; k < n; ++k) sums[0] += static_cast<double>(a[k]) * b[k];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Modified Gram-Schmidt among the vectors [count,n], with normalization.
void orthonormalize(float* vectors, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i) {
    float* vector = vectors + i * n;
    for (std::int64_t j = 0; j < i; ++j) {
      const float* other = vectors + j * n;
      const auto product = static_cast<float>(dot(vector, other, n));
      for (std::int64_t k = 0; k < n; ++k) vector[k] -= product * other[k];
    }
    const auto scale = static_cast<float>(1 / std::sqrt(dot(vector, vector, n)));
    for (std::int64_t k = 0; k < n; ++k) vector[k] *= scale;
  }
}

}  // namespace

void fill_normal(const Cpu& cpu, float* values, std::int64_t n, Rng& rng) {
  constexpr std::uint64_t draws = 2;  // random words per Rng::normal()
  const auto at = [&](std::int64_t i) {
    return Rng(rng.seed(), rng.stream(), rng.position() + draws * static_cast<std::uint64_t>(i));
  };
  cpu.pool->parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
    Rng part = at(begin);
    for (std::int64_t i = begin; i < end; ++i) values[i] = part.normal();
  });
  rng = at(n);
}

// Gram-Schmidt on normally distributed vectors, block by block: two products orthogonalize a block
// against all earlier vectors, then its vectors are orthogonalized against each other. All of it is
// done twice, which reduces the error to float32 rounding ("twice is enough", Giraud et al.,
// Numerische Mathematik 2005).
void fill_orthogonal(const Cpu& cpu, float* values, std::int64_t rows, std::int64_t columns,
                     std::int64_t stride, Rng& rng) {
  const Cpu own{cpu.pool};  // own GEMM: the values do not depend on the library
  const std::int64_t vectors = std::min(rows, columns), n = std::max(rows, columns);
  std::vector<float> q(static_cast<std::size_t>(vectors * n)),
      shared(static_cast<std::size_t>(block * vectors));
  fill_normal(own, q.data(), vectors * n, rng);
  for (std::int64_t first = 0; first < vectors; first += block) {
    const std::int64_t count = std::min(block, vectors - first);
    float* here = q.data() + first * n;
    for (int pass = 0; pass < 2; ++pass) {
      if (first > 0) {
        kernels::gemm(own, false, true, count, first, n, here, n, q.data(), n, 0.0f, shared.data(),
                      first);
        for (std::int64_t i = 0; i < count * first; ++i)
          shared[static_cast<std::size_t>(i)] *= -1.0f;
        kernels::gemm(own, false, false, count, n, first, shared.data(), first, q.data(), n, 1.0f,
                      here, n);
      }
      orthonormalize(here, count, n);
    }
  }
  for (std::int64_t i = 0; i < vectors; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      values[rows <= columns ? i * stride + k : k * stride + i] =
          q[static_cast<std::size_t>(i * n + k)];
}

}  // namespace nmt
