#include "autograd/recurrent/cell.h"

#include "autograd/linear/blocks.h"
#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"
#include "autograd/packed_weights.h"
#include "kernels/pointwise.h"
#include "kernels/products/product_input.h"

namespace nmt::ops {
namespace {

constexpr const char* packing = "packing of recurrent weights";

// Block structure of `planes` planes of the cell's matrices.
kernels::BlockDiagonal cell_blocks(const Cell& cell, int planes) {
  const std::int64_t n = cell.width / cell.groups;
  return {cell.groups, planes, n, n, (cell.unit->recurrents + cell.unit->late) * n};
}

// Number of elements of the packed planes.
std::int64_t packed_planes(const Context& context, Dtype dtype, const Cell& cell, int planes,
                           bool transpose) {
  const std::int64_t h = cell.width;
  if (planes == 0) return 0;
  if (cell.groups == 1)
    return transpose ? packed_elements(context, dtype, planes * h, h)
                     : packed_elements(context, dtype, h, planes * h);
  const kernels::BlockDiagonal d = cell_blocks(cell, planes);
  return kernels::packed_batched_size(context.cpu, transpose ? d.input_gradient() : d.product(),
                                      d.k, d.n);
}

// Packs the recurrent planes, then the late planes: [H,R*H] and [H,L*H], or their transposes.
Tensor pack_cell(const Context& context, const Cell& cell, bool transpose,
                 Dtype dtype = Dtype::f32) {
  const int r = cell.unit->recurrents, l = cell.unit->late;
  const std::int64_t h = cell.width, early = packed_planes(context, dtype, cell, r, transpose);
  Tensor packed = context.empty({early + packed_planes(context, dtype, cell, l, transpose)}, dtype);
  const Region region(context.profile, packing,
                      {0, 8.0 * static_cast<double>(cell.recurrent->shape.elements())});
  const auto part = [&](int first, int planes, std::int64_t to) {
    if (planes == 0) return;
    const kernels::BlockDiagonal d = cell_blocks(cell, planes);
    if (cell.groups == 1)
      return pack_weight(context, transpose, transpose ? planes * h : h, transpose ? h : planes * h,
                         *cell.recurrent, first * d.n, packed, to);
    const float* from = cell.recurrent->value.f32() + first * d.n;
    dispatch(context, [&](const auto& backend) {
      kernels::pack_batched(backend, transpose ? d.input_gradient() : d.product(), transpose, d.n,
                            d.n, from, d.ld, packed.f32() + to);
    });
  };
  part(0, r, 0);
  part(r, l, early);
  return packed;
}

Tensor pack_whole(const Context& context, const Parameter& weight, bool transpose, Dtype dtype) {
  const std::int64_t k = weight.shape[transpose ? 1 : 0], n = weight.shape[transpose ? 0 : 1];
  Tensor packed = context.empty({packed_elements(context, dtype, k, n)}, dtype);
  const Region region(context.profile, packing, {0, 8.0 * static_cast<double>(k * n)});
  pack_weight(context, transpose, k, n, weight, 0, packed);
  return packed;
}

}  // namespace

CellView view_cell(const Context& context, const Cell& cell, bool backward) {
  CellView view;
  kernels::Cell& c = view.cell;
  c.unit = cell.unit;
  c.width = cell.width;
  c.groups = cell.groups;
  c.rearrange = cell.rearrange;
  c.bias = value_of(cell.bias);
  c.gain = value_of(cell.gain);
  c.norm_bias = value_of(cell.norm_bias);
  c.vectors = value_of(cell.vectors);
  c.positions = value_of(cell.positions);
  if (cell.positions) c.position_rows = cell.positions->shape[0];
  c.dropout = pointer(cell.dropout);
  if (cell.dropout) c.dropout_rows = cell.dropout.rows();
  if (!cell.unit->has_recurrent_product()) return view;
  view.packed =
      cell.recurrent->is_packed() ? cell.recurrent->packed : pack_cell(context, cell, false);
  c.recurrent = view_packed(view.packed);
  if (cell.unit->late > 0)
    c.late = view_packed(view.packed, packed_planes(context, view.packed.dtype(), cell,
                                                    cell.unit->recurrents, false));
  if (backward) {
    view.packed_transposed = pack_cell(context, cell, true);
    c.recurrent_transposed = view.packed_transposed.f32();
    c.late_transposed = view.packed_transposed.f32() +
                        packed_planes(context, Dtype::f32, cell, cell.unit->recurrents, true);
  }
  return view;
}

void freeze(const Context& context, const Cell& cell) {
  for (Parameter* p :
       {cell.recurrent, cell.bias, cell.gain, cell.norm_bias, cell.vectors, cell.positions})
    if (p) p->gradient = {};
  if (!cell.recurrent || cell.recurrent->is_packed()) return;
  cell.recurrent->load();
  // Block-diagonal matrices are small and stay in float32.
  cell.recurrent->packed =
      pack_cell(context, cell, false, cell.groups == 1 ? context.weights : Dtype::f32);
  cell.recurrent->drop_value();
}

void freeze(const Context& context, Parameter& weight, bool transpose) {
  weight.gradient = {};
  if (weight.is_packed()) return;
  weight.load();
  weight.packed = pack_whole(context, weight, transpose, context.weights);
  weight.drop_value();
}

void freeze_for_zeros(const Context& context, Parameter& weight) {
  freeze(context, weight);
  if (!weight.packed_rows)
    weight.packed_rows = packed_by_rows(context, weight.shape[0], weight.shape[1], weight.packed);
}

kernels::PackedWeight packed_weight(const Context& context, const Parameter& weight, bool transpose,
                                    Tensor& keep) {
  if (weight.is_packed()) return view_packed(weight.packed);
  keep = pack_whole(context, weight, transpose, Dtype::f32);
  return view_packed(keep);
}

CellBuffers::CellBuffers(const Context& context, const Cell& cell, std::int64_t rows,
                         bool backward) {
  const std::int64_t h = cell.width, r = cell.unit->recurrents, l = cell.unit->late;
  const bool normal = cell.gain && backward;
  if (r > 0) u = context.empty({rows, r * h});
  if (r > 0 && (cell.rearrange || cell.dropout)) rearranged = context.empty({rows, h});
  if (r > 0 && normal) {
    u_normal = context.empty({rows, r * h});
    u_rstd = context.empty({rows, r});
  }
  if (l > 0) {
    late = context.empty({rows, l * h});
    late_value = context.empty({rows, h});
    late_value_rounded = room_for_products(context, cell, rows, h);
  }
  if (l > 0 && normal) {
    late_normal = context.empty({rows, l * h});
    late_rstd = context.empty({rows, l});
  }
}

kernels::CellRecord CellBuffers::record() const {
  return {pointer(rearranged), pointer(u),          pointer(u_normal),
          pointer(u_rstd),     pointer(late),       pointer(late_normal),
          pointer(late_rstd),  pointer(late_value), copy_of(late_value_rounded)};
}

CellGradients::CellGradients(const Context& context, const Cell& cell, std::int64_t rows,
                             const Tensor& x) {
  const std::int64_t h = cell.width;
  (x.dtype() == Dtype::bf16 ? dx_rounded : dx) =
      context.empty({rows, cell.unit->inputs * h}, x.dtype());
  const auto products = [&](std::int64_t planes, Tensor& gradient, Tensor& rounded) {
    if (planes == 0) return;
    gradient = context.empty({rows, planes * h});
    rounded = room_for_products(context, cell, rows, planes * h);
  };
  products(cell.unit->recurrents, du, du_rounded);
  products(cell.unit->late, dlate, dlate_rounded);
}

Tensor room_for_products(const Context& context, const Cell& cell, std::int64_t rows,
                         std::int64_t columns) {
  const bool reads_rows = cell.groups == 1 && !cell.rearrange && !cell.dropout;
  return reads_rows ? allocate_rounded(context, {rows, columns}) : Tensor();
}

kernels::CellGradient CellGradients::view(const Cell& cell) const {
  return {pointer(dx),
          pointer(du),
          pointer(dlate),
          gradient_of(cell.vectors),
          gradient_of(cell.positions),
          gradient_of(cell.gain),
          gradient_of(cell.norm_bias),
          copy_of(dx_rounded),
          copy_of(du_rounded),
          copy_of(dlate_rounded)};
}

std::vector<Piece> previous_rows(const Tensor& start, const Node& states, bool reverse) {
  const std::int64_t rows = states.value.rows(), batch = start.rows(), width = states.value.width();
  const std::int64_t first = reverse ? batch : 0;  // the first state that a step reads
  const kernels::Bfloat16* const copy = states.rounded ? states.rounded.copy() : nullptr;
  const kernels::ProductInput inner(states.value.f32() + first * width,
                                    copy ? copy + first * kernels::rounded_stride(width) : nullptr);
  if (reverse) return {{start.f32(), rows - batch, batch}, {inner, 0, rows - batch}};
  return {{start.f32(), 0, batch}, {inner, batch, rows - batch}};
}

void add_weight_gradients(Tape& tape, const Cell& cell, const CellBuffers& buffers,
                          const CellGradients& gradients, const std::vector<Piece>& previous,
                          std::int64_t rows) {
  if (!cell.unit->has_recurrent_product()) return;
  const Context& context = tape.context();
  const std::int64_t h = cell.width, r = cell.unit->recurrents * h, l = cell.unit->late * h;
  const Region region(
      context.profile, "weight gradients",
      {2.0 * static_cast<double>(rows * h) * static_cast<double>((r + l) / cell.groups)});
  const Tape::ProductGradient dw = tape.product_gradient(*cell.recurrent, rows);
  dispatch(context, [&](const auto& backend) {
    // Gradient of the planes from `first` on, [H, n]: beta times what is there, plus X^T dY.
    const auto add = [&](std::int64_t first, std::int64_t n, std::int64_t count,
                         const kernels::ProductInput& x, const kernels::ProductInput& dy,
                         float beta) {
      if (n == 0 || count == 0) return;
      if (cell.groups == 1)
        return kernels::gemm(backend, true, false, h, n, count, x, h, dy, n, beta,
                             dw.values + first, r + l);
      const kernels::BlockDiagonal d = cell_blocks(cell, static_cast<int>(n / h));
      kernels::gemm_batched(backend, d.weight_gradient(), true, false, d.k, d.n, count, x.f32, h,
                            dy.f32, n, beta, dw.values + first / cell.groups, d.ld);
    };
    if (buffers.rearranged) {
      add(0, r, rows, buffers.rearranged.f32(), gradients.du.f32(), dw.beta);
    } else if (r > 0) {
      const kernels::Bfloat16* const copy = copy_of(gradients.du_rounded);
      float beta = dw.beta;
      for (const Piece& piece : previous) {
        if (piece.rows == 0) continue;
        const std::int64_t first = piece.first * r;
        add(0, r, piece.rows, piece.states,
            {gradients.du.f32() + first, copy ? copy + first : nullptr}, beta);
        beta = 1.0f;
      }
    }
    add(r, l, rows, {pointer(buffers.late_value), copy_of(buffers.late_value_rounded)},
        {pointer(gradients.dlate), copy_of(gradients.dlate_rounded)}, dw.beta);
    if (cell.bias && r > 0)
      kernels::sum_rows(backend, rows, r, gradients.du.f32(), cell.bias->gradient.f32());
    if (cell.bias && l > 0)
      kernels::sum_rows(backend, rows, l, gradients.dlate.f32(), cell.bias->gradient.f32() + r);
  });
}

PartWork cell_work(const Cell& cell, std::int64_t rows, Dtype of_x, bool back) {
  const kernels::Unit& unit = *cell.unit;
  const double n = static_cast<double>(rows * cell.width), products = unit.recurrents + unit.late;
  const double inputs = back ? 2 * unit.inputs : unit.inputs,
               planes = back ? unit.states + 1 + 2 * products : unit.states + products;
  return {2 * n * products * static_cast<double>(cell.width / cell.groups),
          n * (static_cast<double>(bytes_of(of_x)) * inputs + sizeof(float) * planes)};
}

std::vector<Var> complete_states(Tape& tape, const Cell& cell, std::vector<Var> initial) {
  const kernels::Unit& unit = *cell.unit;
  if (initial.empty() || static_cast<int>(initial.size()) != unit.initial_states() ||
      unit.initial_states() == unit.states)
    return initial;
  const Var c = initial[0];
  initial.insert(initial.begin(),
                 unit.initial_output == kernels::InitialOutput::tanh ? ops::tanh(tape, c) : c);
  return initial;
}

std::vector<Tensor> initial_states(const Context& context, const Cell& cell,
                                   const std::vector<Var>& initial, std::int64_t batch) {
  std::vector<Tensor> states;
  for (int p = 0; p < cell.unit->states; ++p) {
    if (!initial.empty()) {
      NMT_CHECK(static_cast<int>(initial.size()) == cell.unit->states,
                "unit {} has {} states, not {}", cell.unit->name, cell.unit->states,
                initial.size());
      states.push_back(initial[p]->value);
      NMT_CHECK(states.back().elements() == batch * cell.width,
                "an initial state {} for {} rows of {}", states.back().shape().text(), batch,
                cell.width);
      continue;
    }
    states.push_back(context.empty({batch, cell.width}));
    dispatch(context, [&](const auto& backend) {
      kernels::fill(backend, states.back().f32(), states.back().elements(),
                    cell.unit->state_start(p));
    });
  }
  return states;
}

std::vector<Tensor> initial_gradients(const Context& context, const Cell& cell, std::int64_t batch,
                                      float** to) {
  std::vector<Tensor> gradients;
  for (int p = 0; p < cell.unit->states; ++p) {
    gradients.push_back(context.empty({batch, cell.width}));
    to[p] = gradients.back().f32();
  }
  return gradients;
}

}  // namespace nmt::ops
