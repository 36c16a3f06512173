#include "kernels/layer_norm.h"

#include "core/thread_pool.h"
#include "kernels/sums.h"

#include <cmath>

namespace nmt::kernels {
namespace {

constexpr std::int64_t rows_grain = 8, columns_grain = 64;

void normalize(std::int64_t width, const float* x, const float* gain, const float* bias, float* y,
               float* normal, float* rstd) {
  const float inverse = 1.0f / static_cast<float>(width);
  const float mean = sum_of(width, x) * inverse;
  const float squares = sum_terms(width, [x, mean](auto at, std::int64_t i) {
    const auto distance = at(x + i) - mean;
    return distance * distance;
  });
  const float scale = 1.0f / std::sqrt(squares * inverse + layer_norm_epsilon);
  if (rstd) *rstd = scale;
  if (normal) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) normal[i] = (x[i] - mean) * scale;
  }
  // y may be x, so it is written last.
  if (bias) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * scale * gain[i];
  }
}

// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)).
void normalize_backward(std::int64_t width, const float* dy, const float* normal, float rstd,
                        const float* gain, float* dx) {
  const float inverse = 1.0f / static_cast<float>(width);
  const float mean = dot(width, dy, gain) * inverse;
  const float along = inverse * sum_terms(width, [=](auto at, std::int64_t i) {
                        return at(dy + i) * at(gain + i) * at(normal + i);
                      });
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    dx[i] = rstd * (dy[i] * gain[i] - mean - normal[i] * along);
}

void backward_rows(std::int64_t rows, std::int64_t planes, std::int64_t width, const float* dy,
                   const float* normal, const float* rstd, const float* gain, float* dx) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t p = 0; p < planes; ++p) {
      const std::int64_t at = (r * planes + p) * width;
      normalize_backward(width, dy + at, normal + at, rstd[r * planes + p], gain + p * width,
                         dx + at);
    }
}

// The parameters' gradients of columns [begin, end), rows ascending.
void parameter_gradients(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                         std::int64_t end, const float* dy, const float* normal, float* dgain,
                         float* dbias) {
  for (std::int64_t r = 0; r < rows; ++r, dy += stride, normal += stride) {
    if (dbias) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        dgain[i] += dy[i] * normal[i];
        dbias[i] += dy[i];
      }
    } else {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) dgain[i] += dy[i] * normal[i];
    }
  }
}

}  // namespace

void layer_norm_rows(std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
                     const float* gain, const float* bias, float* y, float* normal, float* rstd) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t p = 0; p < planes; ++p) {
      const std::int64_t plane = r * planes + p, at = plane * width;
      normalize(width, x + at, gain + p * width, bias ? bias + p * width : nullptr, y + at,
                normal ? normal + at : nullptr, rstd ? rstd + plane : nullptr);
    }
}

void layer_norm_backward_rows(std::int64_t rows, std::int64_t planes, std::int64_t width,
                              const float* dy, const float* normal, const float* rstd,
                              const float* gain, float* dx, float* dgain, float* dbias) {
  // dx may be dy, so the parameter gradients are computed first, row by row while the row is in the
  // cache.
  const std::int64_t stride = planes * width;
  for (std::int64_t r = 0; r < rows; ++r) {
    parameter_gradients(1, stride, 0, stride, dy + r * stride, normal + r * stride, dgain, dbias);
    backward_rows(1, planes, width, dy + r * stride, normal + r * stride, rstd + r * planes, gain,
                  dx + r * stride);
  }
}

void layer_norm(const Cpu& cpu, std::int64_t rows, std::int64_t planes, std::int64_t width,
                const float* x, const float* gain, const float* bias, float* y, float* normal,
                float* rstd) {
  const std::int64_t stride = planes * width;
  cpu.pool->parallel_for(rows, rows_grain, [=](std::int64_t begin, std::int64_t end) {
    layer_norm_rows(end - begin, planes, width, x + begin * stride, gain, bias, y + begin * stride,
                    normal ? normal + begin * stride : nullptr,
                    rstd ? rstd + begin * planes : nullptr);
  });
}

void layer_norm_backward(const Cpu& cpu, std::int64_t rows, std::int64_t planes, std::int64_t width,
                         const float* dy, const float* normal, const float* rstd, const float* gain,
                         float* dx, float* dgain, float* dbias) {
  const std::int64_t stride = planes * width;
  if (cpu.pool->size() == 1)
    return layer_norm_backward_rows(rows, planes, width, dy, normal, rstd, gain, dx, dgain, dbias);
  // Threads split columns, not rows: the order of each sum does not depend on the number of
  // threads. dx may be dy, so this runs first.
  cpu.pool->parallel_for(stride, columns_grain, [=](std::int64_t begin, std::int64_t end) {
    parameter_gradients(rows, stride, begin, end, dy, normal, dgain, dbias);
  });
  cpu.pool->parallel_for(rows, rows_grain, [=](std::int64_t begin, std::int64_t end) {
    backward_rows(end - begin, planes, width, dy + begin * stride, normal + begin * stride,
                  rstd + begin * planes, gain, dx + begin * stride);
  });
}

}  // namespace nmt::kernels
