#include "kernels/decoding/step_rows.h"

namespace nmt::kernels {

void gather_rows_of_each(const Cpu& cpu, std::int64_t rows, const std::int32_t* ids,
                         std::span<const RowsOfMatrix> matrices) {
  for (const RowsOfMatrix& matrix : matrices)
    gather_rows(cpu, rows, matrix.width, ids, matrix.from, matrix.to);
}

void join_columns(const Cpu& cpu, std::int64_t rows, std::span<const RowsOfMatrix> matrices,
                  float* y, Bfloat16* rounded) {
  NMT_CHECK(!rounded, "products of the CPU read no rounded inputs");
  std::int64_t width = 0, at = 0;
  for (const RowsOfMatrix& matrix : matrices) width += matrix.width;
  for (const RowsOfMatrix& matrix : matrices) {
    copy_columns(cpu, rows, matrix.width, matrix.from, matrix.width, y + at, width, false);
    at += matrix.width;
  }
}

}  // namespace nmt::kernels
