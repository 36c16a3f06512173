#pragma once

// CPU helpers shared by the drivers of recurrence, attention and the conditional layer: shares of
// rows, and one step of a share on the calling thread.

#include "core/threads/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/recurrent/recurrence.h"
#include "kernels/recurrent/step_offsets.h"

#include <algorithm>
#include <cstdint>

namespace nmt::kernels {

/// How the products of a share of rows run: on the calling thread, or, if it is the only share,
/// with their columns split over all threads, because with few rows, reading the weights dominates
/// the time.
struct RowsCpu {
  const Cpu& cpu;
  bool all_threads;
};

/// Rows split into at most one contiguous share per thread. Each share has at least `min_rows`
/// rows, unless there is only one.
struct RowShares {
  RowShares(const Cpu& cpu, std::int64_t all, std::int64_t min_rows = 4)
      : rows(all), count(std::clamp<std::int64_t>(all / min_rows, 1, cpu.pool->size())) {}
  std::int64_t begin(std::int64_t share) const { return rows * share / count; }
  /// How the products of a share run.
  RowsCpu cpu(const Cpu& cpu) const { return {cpu, count == 1 && cpu.pool->size() > 1}; }

  /// Calls body(share, begin, end) on every thread that has a share.
  template <class Body>
  void run(const Cpu& cpu, Body&& body) const {
    if (count == 1) return body(std::int64_t{0}, std::int64_t{0}, rows);
    cpu.pool->run([&](int worker) {
      if (worker < count) body(std::int64_t{worker}, begin(worker), begin(worker + 1));
    });
  }

  std::int64_t rows;
  std::int64_t count;
};

/// to [rows, planes*width] (+)= from [rows, in] W; W is dense, or block-diagonal in each plane with
/// `groups` blocks.
void product_rows(const RowsCpu& on, std::int64_t groups, std::int64_t planes, std::int64_t rows,
                  std::int64_t in, std::int64_t width, const float* from,
                  const PackedWeight& packed, bool accumulate, float* to);
/// to [rows, in] (+)= from [rows, planes*width] W^T; W^T is packed.
void product_transposed_rows(const RowsCpu& on, std::int64_t groups, std::int64_t planes,
                             std::int64_t rows, std::int64_t in, std::int64_t width,
                             const float* from, const float* packed, bool accumulate, float* to);

/// destination[i] += the sum over shares of parts[share * n + i], in the order of the shares.
void add_shares(const float* parts, std::int64_t shares, std::int64_t stride, std::int64_t n,
                float* destination);

/// The trained vectors of a position; null when the unit has none.
inline const float* position_row(const Cell& cell, std::int64_t position) {
  if (!cell.positions) return nullptr;
  return cell.positions +
         std::min(position, cell.position_rows - 1) * cell.unit->position_vectors * cell.width;
}

/// One step of a cell for some rows: recurrent product, bias or normalization, pointwise step. `at`
/// is the index of the first row in the record. The caller sets step.x, mask, position, previous
/// and next; this function sets u and late.
void cell_forward(const RowsCpu& on, const Cell& cell, const CellRecord& record, std::int64_t at,
                  UnitStep step);

/// carry[] = the rows of a share in dinitial[], [B,H] each, set to zero.
inline void start_carry(const Cell& cell, float* const* dinitial, std::int64_t begin,
                        std::int64_t rows, float** carry) {
  for (int p = 0; p < cell.unit->states; ++p) {
    carry[p] = dinitial[p] + begin * cell.width;
    std::fill_n(carry[p], rows * cell.width, 0.0f);
  }
}
/// to[i] += from[i].
inline void add_floats(std::int64_t n, const float* from, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

/// Floats of the per-share sums of cell_backward(): vectors, positions, gains and norm biases.
std::int64_t cell_sums(const Cell& cell);
/// Floats of temporary space per row of cell_backward().
std::int64_t cell_space(const Cell& cell);
/// The backward step. carry[] holds dnext and receives dprevious; `row` is the index of the first
/// row in [T,B]; sums: cell_sums() floats of this share; temporary: rows * cell_space() floats.
void cell_backward(const RowsCpu& on, const Cell& cell, const CellRecord& record,
                   const CellGradient& gradient, std::int64_t row, UnitStep step,
                   float* const* carry, float* sums, float* temporary);
/// Adds the sums of all shares to the gradients.
void add_cell_sums(const Cell& cell, const float* sums, std::int64_t shares, std::int64_t stride,
                   const CellGradient& gradient);

/// Attention of one query row over sentence b: weights [heads,S] and context [M].
void attention_row_forward(const Attention& attention, std::int64_t b, const float* query,
                           float* weights, float* context);
/// The backward pass: writes dquery [A]; adds to the rows of dkeys and dmemory of sentence b and to
/// dv [A]; temporary: S floats. row: of the query in [T,B].
void attention_row_backward(const Attention& attention, std::int64_t b, std::int64_t row,
                            const float* query, const float* weights, const float* dcontext,
                            float* dquery, float* dkeys, float* dmemory, float* dv,
                            float* temporary);

}  // namespace nmt::kernels
