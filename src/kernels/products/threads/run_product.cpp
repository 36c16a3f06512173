#include "core/threads/thread_pool.h"
#include "kernels/products/product.h"
#include "kernels/products/tile.h"

#include <algorithm>
#include <cstdint>

namespace nmt::kernels {

Range part_of(std::int64_t n, std::int64_t grain, int index, int parts) {
  const std::int64_t blocks = (n + grain - 1) / grain;
  return {std::min(n, blocks * index / parts * grain),
          std::min(n, blocks * (index + 1) / parts * grain)};
}

Grid choose_grid(int workers, std::int64_t m, std::int64_t n, bool packed) {
  Grid best;
  double least = 0;
  for (int rows = 1; rows <= workers; ++rows) {
    const int columns = workers / rows;
    const double part_m = static_cast<double>((m + rows - 1) / rows);
    const double part_n = static_cast<double>(((n + panel_width - 1) / panel_width + columns - 1) /
                                              columns * panel_width);
    // In FMAs per k: computing the outputs, copying A once per block of columns (a transposed A is
    // copied once for all, which is cheaper), reading or packing B.
    const double cost =
        part_m * part_n + part_m * 3 * (1 + part_n / 400) + part_n * (packed ? 4 : 12);
    if (rows == 1 || cost < least) {
      least = cost;
      best = {rows, columns};
    }
  }
  return best;
}

void run_product(const Cpu& cpu, const Product& p) {
  ThreadPool& pool = *cpu.pool;
  // A small product takes less time than waking a second thread.
  if (pool.size() == 1 || p.m * p.n * p.k < 32 * 1024) return product_part(p, 0, p.m, 0, p.n);
  const Grid grid = choose_grid(pool.size(), p.m, p.n, p.packed || p.packed_bf16);
  pool.run([&](int worker) {
    if (worker >= grid.row_parts * grid.column_parts) return;
    const Range rows = part_of(p.m, 1, worker % grid.row_parts, grid.row_parts);
    const Range columns = part_of(p.n, panel_width, worker / grid.row_parts, grid.column_parts);
    product_part(p, rows.begin, rows.end, columns.begin, columns.end);
  });
}

}  // namespace nmt::kernels
