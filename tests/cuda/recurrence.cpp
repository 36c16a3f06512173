#include "kernels/recurrent/recurrence.h"

#include "kernels/recurrent/matrix_state.h"
#include "tests/cuda/recurrent/loop.h"

#include <string_view>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

struct MatrixSizes {
  std::int64_t steps, batch, width, heads;
  int state_width;
  bool reverse = false, mask = true, backward = true;
  std::int64_t mask_distance = 1;
  float shared_mean = 0.0f, rows_mean = 0.0f;
};

void check(Parity& p, const Unit& unit, const MatrixSizes& m) {
  p.sizes("unit {} steps {} batch {} width {} heads {} state {} reverse {} mask {}", unit.name,
          m.steps, m.batch, m.width, m.heads, m.state_width, m.reverse, m.mask);
  MatrixRecurrence a;
  a.unit = &unit;
  a.steps = m.steps;
  a.batch = m.batch;
  a.width = m.width;
  a.heads = m.heads;
  a.state_width = m.state_width;
  a.reverse = m.reverse;
  const std::int64_t rows = m.steps * m.batch, k = m.state_width,
                     trained = unit.matrix_state->rows * k * m.width;
  const auto x = p.floats(rows * unit.inputs * m.width),
             shared = p.floats(rows * a.shared_width(), m.shared_mean),
             mask = sentence_mask(p, m.steps, m.batch, m.mask_distance),
             vectors = p.floats(unit.vectors * m.width),
             trained_rows = p.floats(trained, m.rows_mean), h_before = p.floats(m.batch * m.width),
             memory_before = p.floats(m.batch * a.memory_width()), h = p.floats(rows * m.width),
             memory = p.floats(m.batch * a.memory_width()), dh = p.floats(rows * m.width),
             dx = p.floats(rows * unit.inputs * m.width),
             dshared = p.floats(rows * a.shared_width()),
             dvectors = p.floats(unit.vectors * m.width), drows = p.floats(trained),
             dh_before = p.floats(m.batch * m.width),
             dmemory_before = p.floats(m.batch * a.memory_width());
  // In an order of each backend's own.
  const std::int64_t kept = (m.steps + matrix_stride - 1) / matrix_stride * m.batch * k * m.width;
  const auto checkpoints = p.scratch(kept, kept);
  const auto record = p.scratch_of([&](const auto& on) { return matrix_record(on, a); });
  const auto scratch = p.scratch_of([&](const auto& on) { return matrix_scratch(on, a); });
  p.run(
      [&](const auto& on) {
        MatrixRecurrence pass = a;
        pass.x = x(on);
        pass.shared = shared(on);
        pass.mask = m.mask ? mask(on) : nullptr;
        pass.vectors = vectors(on);
        pass.rows = trained_rows(on);
        pass.h_before = h_before(on);
        pass.memory_before = memory_before(on);
        pass.h = h(on);
        pass.memory = memory(on);
        pass.record = record(on);
        pass.checkpoints = m.backward ? checkpoints(on) : nullptr;
        matrix_forward(on, pass);
        if (!m.backward) return;
        MatrixGradient g;
        g.dh = dh(on);
        g.dx = dx(on);
        g.dshared = dshared(on);
        g.dvectors = dvectors(on);
        g.drows = drows(on);
        g.dh_before = dh_before(on);
        g.dmemory_before = dmemory_before(on);
        g.scratch = scratch(on);
        matrix_backward(on, pass, g);
      },
      recurrence_tolerance);
}

}  // namespace

std::vector<ParityRow> recurrence_parity() {
  return {
      {"recurrence",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) {
           for (const bool reverse : {false, true})
             check(p, c, {.steps = 6, .batch = 5, .reverse = reverse});
         });
       }},
      {"recurrence_decoding",
       [](Parity& p) {
         each_cell([&](const CellSizes& c) {
           check(p, c, {.steps = 1, .batch = 5, .mask = false, .backward = false, .position = 1});
           check(p, c, {.steps = 3, .batch = 3, .mask = false, .backward = false, .position = 9});
         });
       }},
      {"recurrence_sizes",
       [](Parity& p) {
         for (const Unit& unit : units()) {
           for (const std::int64_t width : {1, 3, 257})
             check(p, {.unit = &unit, .width = width, .positions = 2},
                   {.steps = 2, .batch = 3, .mask = false, .position = 4});
           for (const std::int64_t batch : {1, 31})
             check(p, {.unit = &unit, .width = 3}, {.steps = 5, .batch = batch, .position = 1});
           check(p, {.unit = &unit, .width = 3}, {.steps = 33, .batch = 2, .reverse = true});
           // Long and few: in chunks, in units that allow it.
           if (!unit.has_recurrent_product()) {
             for (const bool reverse : {false, true})
               check(p, {.unit = &unit, .width = 7},
                     {.steps = 150, .batch = 4, .reverse = reverse});
             // Sentences that end or begin before, at and after the ends of chunks.
             for (const bool reverse : {false, true})
               check(p, {.unit = &unit, .width = 1},
                     {.steps = 150, .batch = 45, .reverse = reverse});
             check(p, {.unit = &unit, .width = 5}, {.steps = 200, .batch = 1, .mask = false});
             check(p, {.unit = &unit, .width = 5}, {.steps = 131, .batch = 3, .backward = false});
             continue;
           }
           check(p, {.unit = &unit, .width = 65, .normal = true, .positions = 2},
                 {.steps = 2, .batch = 3});
           if (std::string_view(unit.name) == "gru")  // more channels than threads, and than kept
             for (const std::int64_t width : {520, 1030})
               check(p, {.unit = &unit, .width = width, .normal = true}, {.steps = 2, .batch = 1});
         }
       }},
      {"matrix_recurrence",
       [](Parity& p) {
         for (const Unit& unit : matrix_state_units()) {
           check(p, unit, {.steps = 11, .batch = 3, .width = 6, .heads = 2, .state_width = 5});
           check(p, unit,
                 {.steps = 8,
                  .batch = 2,
                  .width = 66,
                  .heads = 2,
                  .state_width = 3,
                  .reverse = true});
           check(
               p, unit,
               {.steps = 2, .batch = 5, .width = 32, .heads = 1, .state_width = 64, .mask = false});
           check(p, unit,
                 {.steps = 1,
                  .batch = 4,
                  .width = 40,
                  .heads = 4,
                  .state_width = 16,
                  .mask = false,
                  .backward = false});
           // Long and few: in chunks of 40 steps, with gates that remember across them. Sentences
           // have chunks that are masked in part and wholly.
           const MatrixSizes chunks{.steps = 150,
                                    .batch = 4,
                                    .width = 6,
                                    .heads = 2,
                                    .state_width = 5,
                                    .mask_distance = 41,
                                    .shared_mean = 4,
                                    .rows_mean = -4};
           MatrixSizes reverse = chunks, forward = chunks;
           reverse.reverse = true;
           forward.backward = false;
           for (const MatrixSizes& sizes : {chunks, reverse, forward}) check(p, unit, sizes);
           check(p, unit,
                 {.steps = 135,
                  .batch = 1,
                  .width = 34,
                  .heads = 1,
                  .state_width = 33,
                  .mask = false,
                  .shared_mean = 4,
                  .rows_mean = -4});
         }
       }},
  };
}

}  // namespace nmt::test
