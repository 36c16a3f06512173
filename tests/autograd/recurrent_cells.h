#pragma once

// Units in the op table: a cell with random parameters, and its reference in double for dense and
// block-diagonal matrices.

#include "tests/support/cells.h"
#include "tests/support/gradient_check.h"

#include <string>
#include <vector>

namespace nmt::test {

/// test::cell_step of a unit.
using CellStep = void (*)(const CellValues&, std::size_t, const double*, std::vector<Row>&,
                          std::size_t);

/// Groups of a layer's matrices; rearranged: they read the groups' channels in turn.
struct Blocks {
  std::int64_t groups = 1;
  bool rearranged = false;
  bool dropout = false;  ///< of what the products read
};

/// [K, k, P*n] -> the [K*k, P*K*n] matrix it stands for; row r of the rearranged input is channel
/// r % K * k + r / K.
inline Row dense(const Row& blocks, const Blocks& b, std::int64_t rows, std::int64_t planes,
                 std::int64_t width) {
  if (b.groups == 1) return blocks;
  const std::int64_t groups = b.groups, k = rows / groups, n = width / groups;
  Row out(rows * planes * width);
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t p = 0; p < planes; ++p)
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t at = g * k + i,
                             row = b.rearranged ? at % groups * k + at / groups : at;
          out[row * planes * width + p * width + g * n + j] = blocks[at * planes * n + p * n + j];
        }
  return out;
}

/// A cell whose parameters are operands.
struct TestedCell {
  CellParameters parameters;
  CellValues values;
  Blocks blocks;

  void make(Engine& engine, const kernels::Unit& unit, std::int64_t h, bool normal, Blocks b) {
    blocks = b;
    test::make(engine, unit, h, normal, parameters);
    const std::int64_t planes = unit.recurrents + unit.late;
    if (planes > 0 && b.groups > 1) {
      parameters.recurrent =
          engine.parameter("recurrent", {b.groups, h / b.groups, planes * h / b.groups}, 0.5f);
      parameters.cell.groups = b.groups;
      parameters.cell.rearrange = b.rearranged;
    }
    values = test::values(parameters.cell);
  }
  void read(GradientCheck& check, const std::string& name) {
    CellParameters& p = parameters;
    if (p.cell.recurrent) check.reads(name + " recurrent", values.recurrent, p.recurrent);
    if (p.cell.bias) check.reads(name + " bias", values.bias, p.bias);
    if (p.cell.gain) check.reads(name + " gain", values.gain, p.gain);
    if (p.cell.gain) check.reads(name + " norm_bias", values.norm_bias, p.norm_bias);
    if (p.cell.vectors) check.reads(name + " vectors", values.vectors, p.vectors);
    if (p.cell.positions) check.reads(name + " positions", values.positions, p.positions);
  }
  /// Dropout of a third of what the products read, for so many rows.
  void drop(Engine& engine, std::int64_t rows) {
    if (!blocks.dropout || !parameters.cell.unit->has_recurrent_product()) return;
    Tensor& factors = parameters.cell.dropout;
    factors = engine.context.empty({rows, parameters.cell.width});
    for (std::int64_t i = 0; i < factors.elements(); ++i)
      factors.f32()[i] = engine.rng.below(3) == 0 ? 0.0f : 1.5f;
  }
  /// What cell_step() reads: the values with a dense matrix, and the dropout of a row.
  CellValues expanded(std::int64_t row) const {
    CellValues out = values;
    const std::int64_t h = parameters.cell.width, k = h / blocks.groups;
    if (parameters.cell.dropout)
      for (std::int64_t i = 0; i < h; ++i)
        out.dropout.push_back(
            parameters.cell.dropout
                .f32()[row * h + (blocks.rearranged ? i % k * blocks.groups + i / k : i)]);
    const kernels::Unit& unit = *parameters.cell.unit;
    if (parameters.cell.recurrent)
      out.recurrent = dense(values.recurrent, blocks, parameters.cell.width,
                            unit.recurrents + unit.late, parameters.cell.width);
    return out;
  }
  /// The same for the rows 0 to n - 1.
  std::vector<CellValues> expanded_rows(std::int64_t n) const {
    std::vector<CellValues> rows;
    for (std::int64_t row = 0; row < n; ++row) rows.push_back(expanded(row));
    return rows;
  }
};

/// The rows b of initial states, each [batch, h].
inline std::vector<Row> states_of(const std::vector<Row>& initial, std::int64_t b, std::int64_t h) {
  std::vector<Row> states;
  for (const Row& all : initial) states.emplace_back(&all[b * h], &all[b * h] + h);
  return states;
}

/// Letters, digits and _ of a unit and its variant.
inline std::string row_name(const kernels::Unit& unit) {
  std::string name = std::string(unit.name) + "_" + unit.variant;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace nmt::test
