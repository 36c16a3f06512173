#include "kernels/layer_norm.h"

#include "core/threads/thread_pool.h"
#include "kernels/recurrent/rows.h"
#include "kernels/sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nmt::kernels {
namespace {

constexpr std::int64_t rows_grain = 8, block_rows = 64, columns_grain = 64;

struct Statistics {
  float mean, scale;
};
// The normalized values of a part are (value - mean) * scale: of the input, or of the normalized
// values themselves.
constexpr Statistics of_normal{0.0f, 1.0f};

// Returns mean and 1/sigma.
Statistics normalize(std::int64_t width, const float* x, const float* gain, const float* bias,
                     float* y, float* normal) {
  const float inverse = 1.0f / static_cast<float>(width);
  const float mean = sum_of(width, x) * inverse;
  const float squares = sum_terms(width, [x, mean](auto at, std::int64_t i) {
    const auto distance = at(x + i) - mean;
    return distance * distance;
  });
  const float scale = 1.0f / std::sqrt(squares * inverse + layer_norm_epsilon);
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
  return {mean, scale};
}

// With g = gain dy and n the normalized x: dx = rstd (g - mean(g) - n mean(g n)).
void normalize_backward(std::int64_t width, const float* dy, const float* values,
                        Statistics statistics, float rstd, const float* gain, float* dx) {
  const auto [mean, scale] = statistics;
  const float inverse = 1.0f / static_cast<float>(width);
  const float of_gradient = dot(width, dy, gain) * inverse;
  const float along =
      inverse * sum_terms(width, [=, mean = mean, scale = scale](auto at, std::int64_t i) {
        return at(dy + i) * at(gain + i) * ((at(values + i) - mean) * scale);
      });
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    dx[i] = rstd * (dy[i] * gain[i] - of_gradient - (values[i] - mean) * scale * along);
}

// The parameters' gradients of a part from one row.
void add_parameter_gradients(std::int64_t width, const float* dy, const float* values,
                             Statistics statistics, float* dgain, float* dbias) {
  const float mean = statistics.mean, scale = statistics.scale;
  if (dbias) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      dgain[i] += dy[i] * ((values[i] - mean) * scale);
      dbias[i] += dy[i];
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) dgain[i] += dy[i] * ((values[i] - mean) * scale);
  }
}

// A row of planes and its statistics, `at` parts from the first.
Statistics read(const float* statistics, std::int64_t at) {
  return {statistics[2 * at], statistics[2 * at + 1]};
}

}  // namespace

void layer_norm_rows(std::int64_t rows, std::int64_t planes, std::int64_t width, const float* x,
                     const float* gain, const float* bias, float* y, float* normal, float* rstd) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t p = 0; p < planes; ++p) {
      const std::int64_t plane = r * planes + p, at = plane * width;
      const Statistics found =
          normalize(width, x + at, gain + p * width, bias ? bias + p * width : nullptr, y + at,
                    normal ? normal + at : nullptr);
      if (rstd) rstd[plane] = found.scale;
    }
}

void layer_norm_backward_rows(std::int64_t rows, std::int64_t planes, std::int64_t width,
                              const float* dy, const float* normal, const float* rstd,
                              const float* gain, float* dx, float* dgain, float* dbias) {
  // dx may be dy, so the parameter gradients are computed first, row by row while the row is in the
  // cache.
  const std::int64_t stride = planes * width;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *const dy_row = dy + r * stride, *const normal_row = normal + r * stride;
    add_parameter_gradients(stride, dy_row, normal_row, of_normal, dgain, dbias);
    for (std::int64_t p = 0; p < planes; ++p)
      normalize_backward(width, dy_row + p * width, normal_row + p * width, of_normal,
                         rstd[r * planes + p], gain + p * width, dx + r * stride + p * width);
  }
}

void layer_norm(const Cpu& cpu, std::int64_t rows, std::int64_t planes, std::int64_t width,
                const float* x, const float* gain, const float* bias, float* y, float* statistics) {
  cpu.pool->parallel_for(rows, rows_grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin * planes; part < end * planes; ++part) {
      const std::int64_t at = part * width, p = part % planes * width;
      const Statistics found =
          normalize(width, x + at, gain + p, bias ? bias + p : nullptr, y + at, nullptr);
      if (!statistics) continue;
      statistics[2 * part] = found.mean;
      statistics[2 * part + 1] = found.scale;
    }
  });
}

void layer_norm_backward(const Cpu& cpu, std::int64_t rows, std::int64_t planes, std::int64_t width,
                         const float* dy, const float* x, const float* statistics,
                         const float* gain, float* dx, float* dgain, float* dbias) {
  // Each block of rows has its own sums, so the order of additions does not depend on the number of
  // threads.
  const std::int64_t stride = planes * width, blocks = (rows + block_rows - 1) / block_rows;
  // Stores whose addresses have the lower 12 bits of later loads delay these; rows often begin at a
  // page.
  constexpr std::int64_t off_the_page = 256;
  thread_local std::vector<float> memory;
  memory.resize(
      std::max(memory.size(), static_cast<std::size_t>(off_the_page + 2 * blocks * stride)));
  float* const sums = memory.data() + off_the_page;
  const auto row_backward = [=](std::int64_t row, float* dgain_sums, float* dbias_sums) {
    for (std::int64_t p = 0; p < planes; ++p) {
      const std::int64_t at = row * stride + p * width;
      const Statistics of_x = read(statistics, row * planes + p);
      // dx may be dy, so the parameters come first.
      add_parameter_gradients(width, dy + at, x + at, of_x, dgain_sums + p * width,
                              dbias_sums ? dbias_sums + p * width : nullptr);
      normalize_backward(width, dy + at, x + at, of_x, of_x.scale, gain + p * width, dx + at);
    }
  };
  const auto block_backward = [=](std::int64_t block, float* of_block) {
    std::fill_n(of_block, dbias ? 2 * stride : stride, 0.0f);
    for (std::int64_t row = block * block_rows; row < std::min((block + 1) * block_rows, rows);
         ++row)
      row_backward(row, of_block, dbias ? of_block + stride : nullptr);
  };
  const auto add_block = [=](std::int64_t begin, std::int64_t end, const float* of_block) {
    add_floats(end - begin, of_block + begin, dgain + begin);
    if (dbias) add_floats(end - begin, of_block + stride + begin, dbias + begin);
  };
  if (cpu.pool->size() == 1) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      block_backward(block, sums);
      add_block(0, stride, sums);
    }
    return;
  }
  cpu.pool->parallel_for(blocks, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      block_backward(block, sums + 2 * block * stride);
  });
  cpu.pool->parallel_for(stride, columns_grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = 0; block < blocks; ++block)
      add_block(begin, end, sums + 2 * block * stride);
  });
}

void residual_norm(const Cpu& cpu, const ResidualNorm& a, const Dropout& d) {
  NMT_CHECK(!a.rounded && !a.branch_rounded, "products of the CPU read and write no rounded rows");
  const float* branch = a.branch;
  if (d.p > 0.0f) {
    dropout(cpu, a.rows, a.width, d.map, d.p, d.key, d.stream, branch, a.sum);
    branch = a.sum;
  }
  add(cpu, a.rows * a.width, branch, a.x, a.sum);
  layer_norm(cpu, a.rows, 1, a.width, a.sum, a.gain, a.bias, a.y, a.statistics);
}

void residual_norm_backward(const Cpu& cpu, const ResidualNorm& a, const Dropout& d,
                            const ResidualNormGradient& g) {
  NMT_CHECK(!g.dbranch_rounded, "products of the CPU read no rounded inputs");
  const std::int64_t n = a.rows * a.width;
  layer_norm_backward(cpu, a.rows, 1, a.width, g.dy, a.sum, a.statistics, a.gain, g.dy, g.dgain,
                      g.dbias);
  if (g.dbranch && d.p > 0.0f)
    dropout(cpu, a.rows, a.width, d.map, d.p, d.key, d.stream, g.dy, g.dbranch);
  else if (g.dbranch)
    copy_columns(cpu, a.rows, a.width, g.dy, a.width, g.dbranch, a.width, false);
  if (g.dx && g.accumulate)
    add_scaled(cpu, n, 1.0f, g.dy, g.dx);
  else if (g.dx && g.dx != g.dy)
    copy_columns(cpu, a.rows, a.width, g.dy, a.width, g.dx, a.width, false);
}

}  // namespace nmt::kernels
