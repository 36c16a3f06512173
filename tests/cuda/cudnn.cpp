// Layers of cuDNN against our own linear layer and recurrence on the CPU.

#include "kernels/recurrent/cudnn.h"

#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/recurrent/recurrence.h"
#include "tests/cuda/table.h"

#include <optional>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

using namespace nmt::kernels;
using Floats = std::vector<float>;

constexpr double tolerance = 1e-4;  // rounding errors grow from step to step

struct LayerSizes {
  const Unit* unit;
  std::int64_t input, width, steps = 4, batch = 3;
  bool reverse = false, ragged = true, initial = false, input_bias = false, backward = true;
};

/// The layer's buffers on both sides.
struct Layer {
  Layer(Parity& p, const LayerSizes& s)
      : sizes(s),
        planes(s.unit->inputs * s.width),
        rows(s.steps * s.batch),
        state(s.batch * s.width),
        x(p.floats(rows * s.input)),
        w(p.floats(s.input * planes)),
        w_bias(p.floats(planes)),
        u(p.floats(s.width * planes)),
        u_bias(p.floats(planes)),
        dh(p.floats(rows * s.width)),
        h(p.floats(rows * s.width)),
        cell(p.floats(state)),
        dx(p.floats(rows * s.input)),
        dw(p.floats(s.input * planes)),
        dw_bias(p.floats(planes)),
        du(p.floats(s.width * planes)),
        du_bias(p.floats(planes)),
        initial{p.floats(state), p.floats(state)},
        dinitial{p.floats(state), p.floats(state)} {
    for (std::int64_t b = 0; b < s.batch; ++b)
      lengths.push_back(static_cast<std::int32_t>(
          !s.ragged || b == s.batch / 2 ? s.steps : 1 + (b * 7 + 3) % s.steps));
    device_lengths.emplace(p.integers(lengths));
  }
  LayerSizes sizes;
  std::int64_t planes, rows, state;
  Both<float> x, w, w_bias, u, u_bias, dh, h, cell, dx, dw, dw_bias, du, du_bias, initial[2],
      dinitial[2];
  std::vector<std::int32_t> lengths;
  std::optional<Both<std::int32_t>> device_lengths;
};

// The reference: projection, recurrence and their gradients as the ops combine them.
void run_ours(const Cpu& on, const Layer& l) {
  const LayerSizes& s = l.sizes;
  const std::int64_t h = s.width, e = s.input, n = l.rows, wide = l.planes;
  const auto floats = [](std::int64_t count) { return Floats(static_cast<std::size_t>(count)); };
  Floats x = floats(n * wide), u = floats(n * wide), zeros = floats(l.state),
         mask(static_cast<std::size_t>(n), 1.0f), cells = floats(n * h);
  gemm(on, false, false, n, wide, e, l.x(on), e, l.w(on), wide, 0.0f, x.data(), wide);
  if (s.input_bias) add_bias(on, n, wide, x.data(), l.w_bias(on), x.data());
  for (std::int64_t i = 0; i < n; ++i)
    mask[static_cast<std::size_t>(i)] =
        i / s.batch < l.lengths[static_cast<std::size_t>(i % s.batch)];
  Floats packed = floats(packed_size(h, wide)), transposed = floats(packed_size(wide, h));
  pack(on, false, h, wide, l.u(on), wide, packed.data());
  pack(on, true, wide, h, l.u(on), wide, transposed.data());
  Recurrence a;
  a.cell.unit = s.unit;
  a.cell.width = h;
  a.cell.recurrent = packed.data();
  a.cell.recurrent_transposed = transposed.data();
  a.cell.bias = l.u_bias(on);
  a.steps = s.steps;
  a.batch = s.batch;
  a.reverse = s.reverse;
  a.x = x.data();
  a.mask = mask.data();
  a.record.u = u.data();
  for (int p = 0; p < s.unit->states; ++p) {
    a.initial[p] = s.initial ? l.initial[p](on) : zeros.data();
    a.states[p] = p == 0 ? l.h(on) : cells.data();
  }
  recurrence_forward(on, a);
  const std::int64_t last = s.reverse ? 0 : s.steps - 1;
  if (s.unit->states > 1) std::copy_n(cells.data() + last * l.state, l.state, l.cell(on));
  if (!s.backward) return;

  Floats dx = floats(n * wide), du = floats(n * wide), previous = floats(n * h),
         dinitial[2] = {zeros, zeros}, scratch = floats(recurrence_scratch(on, a));
  RecurrenceGradient g;
  g.dh = l.dh(on);
  g.cell.dx = dx.data();
  g.cell.du = du.data();
  g.scratch = scratch.data();
  for (int p = 0; p < s.unit->states; ++p)
    g.dinitial[p] = s.initial ? l.dinitial[p](on) : dinitial[p].data();
  recurrence_backward(on, a, g);
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const std::int64_t before = s.reverse ? t + 1 : t - 1;
    const float* const from =
        before < 0 || before == s.steps ? a.initial[0] : l.h(on) + before * l.state;
    std::copy_n(from, l.state, previous.data() + t * l.state);
  }
  gemm(on, false, true, n, e, wide, dx.data(), wide, l.w(on), wide, 0.0f, l.dx(on), e);
  gemm(on, true, false, e, wide, n, l.x(on), e, dx.data(), wide, 1.0f, l.dw(on), wide);
  gemm(on, true, false, h, wide, n, previous.data(), h, du.data(), wide, 1.0f, l.du(on), wide);
  if (s.input_bias) sum_rows(on, n, wide, dx.data(), l.dw_bias(on));
  sum_rows(on, n, wide, du.data(), l.du_bias(on));
}

void run_cudnn(Parity& p, const Cuda& on, const Cudnn& cudnn, const Layer& l) {
  const LayerSizes& s = l.sizes;
  CudnnPass pass;
  pass.layer = {s.unit, s.input, s.width};
  pass.steps = s.steps;
  pass.batch = s.batch;
  pass.reverse = s.reverse;
  pass.training = s.backward;
  if (s.ragged) {
    pass.lengths = l.lengths.data();
    pass.device_lengths = (*l.device_lengths)(on);
  }
  pass.x = l.x(on);
  pass.h = l.h(on);
  if (s.unit->states > 1) pass.last_cell = l.cell(on);
  for (int i = 0; s.initial && i < s.unit->states; ++i) pass.initial[i] = l.initial[i](on);
  const CudnnSizes sizes = cudnn.sizes(pass);
  const auto packed = p.scratch(0, sizes.weights), reserve = p.scratch(0, sizes.reserve),
             scratch = p.scratch(0, sizes.scratch), dh = p.scratch(0, l.rows * s.width);
  cudnn.pack(pass.layer, {l.w(on), s.input_bias ? l.w_bias(on) : nullptr, l.u(on), l.u_bias(on)},
             packed(on));
  pass.weights = packed(on);
  pass.reserve = reserve(on);
  pass.scratch = scratch(on);
  cudnn.forward(pass);
  if (s.backward) {
    on.device->copy(dh(on), l.dh(on), static_cast<std::size_t>(l.rows * s.width) * sizeof(float));
    CudnnGradient g;
    g.dh = dh(on);
    g.dx = l.dx(on);
    for (int i = 0; s.initial && i < s.unit->states; ++i) g.dinitial[i] = l.dinitial[i](on);
    g.weights = {l.dw(on), s.input_bias ? l.dw_bias(on) : nullptr, l.du(on), l.du_bias(on)};
    cudnn.backward(pass, g);
  }
  on.device->synchronize();
}

void check(Parity& p, const Cudnn& cudnn, const LayerSizes& s) {
  p.sizes(
      "{} {} input {} width {} steps {} batch {} reverse {} ragged {} initial {} input bias {} "
      "backward {}",
      s.unit->name, s.unit->variant, s.input, s.width, s.steps, s.batch, s.reverse, s.ragged,
      s.initial, s.input_bias, s.backward);
  const Layer layer(p, s);
  p.run([&](const Cpu& on) { run_ours(on, layer); },
        [&](const Cuda& on) { run_cudnn(p, on, cudnn, layer); }, tolerance);
}

/// body(cudnn, unit) for the units that cuDNN supports.
template <class Body>
void each_unit(Parity& p, Body&& body) {
  std::string why;
  const std::unique_ptr<Cudnn> cudnn = Cudnn::open(p.cuda(), why);
  if (!cudnn) GTEST_SKIP() << "no cuDNN to test: " << why;
  for (const Unit& unit : units()) {
    const std::string_view name = unit.name, variant = unit.variant;
    if ((name == "lstm" && variant == "input=xh") || variant == "reset=after") body(*cudnn, unit);
  }
}

}  // namespace

std::vector<ParityRow> cudnn_parity() {
  return {
      {"cudnn_layer",
       [](Parity& p) {
         each_unit(p, [&](const Cudnn& cudnn, const Unit& unit) {
           for (const bool reverse : {false, true})
             for (const bool ragged : {false, true})
               for (const bool initial : {false, true})
                 for (const bool input_bias : {false, true})
                   check(p, cudnn, {&unit, 5, 7, 4, 5, reverse, ragged, initial, input_bias});
         });
       }},
      {"cudnn_layer_inference",
       [](Parity& p) {
         each_unit(p, [&](const Cudnn& cudnn, const Unit& unit) {
           for (const bool reverse : {false, true})
             check(p, cudnn, {&unit, 3, 33, 6, 3, reverse, true, false, true, false});
           check(p, cudnn,
                 {&unit, 31, 3, 1, 5, false, false, true, false, false});  // a step of the decoder
         });
       }},
      {"cudnn_layer_algorithms",
       [](Parity& p) {
         // Layers whose persistent algorithm the emulator refuses in one call or another
         // (tests/emulator/cudnn_state.h), and one that it has.
         each_unit(p, [&](const Cudnn& cudnn, const Unit& unit) {
           for (const bool reverse : {false, true})
             for (const auto& [input, width] :
                  {std::pair{4, 5}, {4, 6}, {4, 12}, {4, 16}, {3, 8}, {6, 8}, {4, 8}}) {
               check(p, cudnn, {&unit, input, width, 4, 5, reverse, true, true, true});
               check(p, cudnn, {&unit, input, width, 2, 3, reverse, true, true, true});
             }
           check(p, cudnn, {&unit, 4, 24, 6, 3, false, true, false, true, false});
         });
       }},
      {"cudnn_layer_sizes",
       [](Parity& p) {
         each_unit(p, [&](const Cudnn& cudnn, const Unit& unit) {
           for (const std::int64_t input : odd_sizes)
             check(p, cudnn, {.unit = &unit, .input = input, .width = 3});
           for (const std::int64_t width : odd_sizes)
             check(p, cudnn, {.unit = &unit, .input = 3, .width = width, .steps = 2});
           for (const std::int64_t steps : {1, 3, 31, 33})
             check(p, cudnn,
                   {.unit = &unit, .input = 3, .width = 5, .steps = steps, .reverse = true});
           for (const std::int64_t batch : {1, 31, 257})
             check(p, cudnn,
                   {.unit = &unit, .input = 2, .width = 3, .batch = batch, .reverse = true});
         });
       }},
  };
}

}  // namespace nmt::test
