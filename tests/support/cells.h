#pragma once

// A cell with random parameters for tests of the drivers, and its copy in double for the reference.

#include "autograd/ops/recurrent.h"
#include "tests/support/engine.h"
#include "tests/support/reference.h"

namespace nmt::test {

struct CellParameters {
  Parameter recurrent, bias, gain, norm_bias, vectors, positions;
  ops::Cell cell;
};

inline void make(Engine& engine, const kernels::Unit& unit, std::int64_t h, bool normal,
                 CellParameters& p) {
  const int planes = unit.recurrents + unit.late;
  p.cell.unit = &unit;
  p.cell.width = h;
  if (planes > 0) {
    p.recurrent = engine.parameter("recurrent", {h, planes * h}, 0.5f);
    p.cell.recurrent = &p.recurrent;
    p.bias = engine.parameter("bias", {planes * h}, 0.5f);
    p.cell.bias = normal ? nullptr : &p.bias;
    p.gain = engine.parameter("gain", {planes * h}, 0.3f, 1.0f);
    p.norm_bias = engine.parameter("norm_bias", {planes * h}, 0.3f);
    if (normal) {
      p.cell.gain = &p.gain;
      p.cell.norm_bias = &p.norm_bias;
    }
  }
  if (unit.vectors > 0) {
    p.vectors = engine.parameter("vectors", {unit.vectors, h}, 0.5f);
    p.cell.vectors = &p.vectors;
  }
  if (unit.position_vectors > 0) {
    p.positions = engine.parameter("positions", {3, unit.position_vectors * h}, 0.5f, 1.0f);
    p.cell.positions = &p.positions;
  }
}

inline CellValues values(const ops::Cell& c) {
  const auto of = [](const Parameter* p) { return p ? doubles(p->value) : Row{}; };
  return {of(c.recurrent), of(c.bias),      of(c.gain), of(c.norm_bias),
          of(c.vectors),   of(c.positions), {}};
}

}  // namespace nmt::test
