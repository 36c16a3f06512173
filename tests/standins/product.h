#pragma once

// What the stand-ins of cuBLAS and cuBLASLt share. They use the emulator through functions that the
// test program exports.

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#include <cublas_v2.h>

extern "C" {
/// Runs the work now, or as a node of the stream's capture; 0 or an error of the runtime. Outside
/// captures the work may return nmt::standins::not_ready: it is then called again later.
int nmt_standin_enqueue(cudaStream_t stream, const char* name, const std::function<int()>& work);
bool nmt_standin_is_captured(cudaStream_t stream);
/// Whether these bytes lie in one piece of device memory.
bool nmt_standin_has(const void* data, std::size_t bytes);
/// Whether the stream has been made and not destroyed, or is null.
bool nmt_standin_exists(cudaStream_t stream);
/// The current device, and that of a stream.
int nmt_standin_device();
int nmt_standin_device_of(cudaStream_t stream);
/// The status that a test has planted for a call; 0: none.
int nmt_standin_failure(const char* call);
}

namespace nmt::standins {

constexpr int not_ready = cudaErrorNotReady;

/// A column-major matrix with rows and columns as stored.
struct Matrix {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, ld = 0;

  std::size_t bytes() const {
    const std::int64_t elements = columns > 0 ? (columns - 1) * ld + rows : 0;
    return static_cast<std::size_t>(elements) * (type == CUDA_R_16BF ? 2 : 4);
  }
  bool is_valid() const {
    return ld >= std::max<std::int64_t>(rows, 1) && nmt_standin_has(data, bytes());
  }
  /// Element [row,column], as the compute type reads it.
  double at(std::int64_t row, std::int64_t column, bool tf32) const {
    const std::int64_t i = column * ld + row;
    if (type == CUDA_R_16BF)
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[i]) << 16);
    const float x = static_cast<const float*>(data)[i];
    if (!tf32 || !std::isfinite(x)) return x;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & ~0x1FFFu);
  }
};

/// The bfloat16 number nearest to a finite one; of two equally near the even one.
inline std::uint16_t nearest(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/// C [m,n] = alpha op(A) op(B) + beta C (+ bias [m] for every column), column-major, summed in
/// double.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, tf32 = false;
  float alpha = 1, beta = 0;
  Matrix a, b, c;
  const float* bias = nullptr;

  bool is_valid() const {
    const auto fits = [](const Matrix& x, bool transpose, std::int64_t rows, std::int64_t columns) {
      return (transpose ? x.columns : x.rows) == rows &&
             (transpose ? x.rows : x.columns) == columns && x.is_valid();
    };
    return fits(a, transpose_a, m, k) && fits(b, transpose_b, k, n) && fits(c, false, m, n) &&
           a.type == b.type && (c.type == CUDA_R_32F || c.type == a.type) &&
           (!bias || nmt_standin_has(bias, static_cast<std::size_t>(m) * sizeof(float)));
  }
  void run() const {
    void* const to = const_cast<void*>(c.data);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += (transpose_a ? a.at(l, i, tf32) : a.at(i, l, tf32)) *
                 (transpose_b ? b.at(j, l, tf32) : b.at(l, j, tf32));
        sum *= alpha;
        if (beta != 0) sum += static_cast<double>(beta) * c.at(i, j, false);
        const auto result = static_cast<float>(sum + (bias ? bias[i] : 0.0f));
        const std::int64_t place = j * c.ld + i;
        if (c.type == CUDA_R_16BF)
          static_cast<std::uint16_t*>(to)[place] = nearest(result);
        else
          static_cast<float*>(to)[place] = result;
      }
  }
};

inline cublasStatus_t enqueue(cudaStream_t stream, const char* name,
                              const std::function<int()>& work) {
  if (nmt_standin_device_of(stream) != nmt_standin_device()) return CUBLAS_STATUS_EXECUTION_FAILED;
  return nmt_standin_enqueue(stream, name, work) == 0 ? CUBLAS_STATUS_SUCCESS
                                                      : CUBLAS_STATUS_EXECUTION_FAILED;
}
inline cublasStatus_t planted(const char* call) {
  return static_cast<cublasStatus_t>(nmt_standin_failure(call));
}

}  // namespace nmt::standins
