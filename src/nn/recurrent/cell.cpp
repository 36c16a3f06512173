#include "nn/recurrent/cell.h"

#include "autograd/ops/plain.h"
#include "core/error.h"
#include "core/rng.h"
#include "kernels/pointwise.h"
#include "kernels/recurrent/matrix_state.h"
#include "nn/recurrent/input_projection.h"

#include <utility>
#include <vector>

namespace nmt {
namespace {

// Sets the vectors [vectors,H] of a unit that starts them otherwise than at 0.
void start_vectors(const Builder& builder, const UnitSettings& settings, Parameter& vectors) {
  const kernels::Unit& unit = *settings.unit;
  if (!unit.vector_start) return;
  constexpr std::uint32_t use = 2;  // of the generator; gates have 1
  Rng rng = builder.generator(use);
  std::vector<float> values;
  for (int k = 0; k < unit.vectors; ++k)
    for (std::int64_t j = 0; j < settings.width; ++j)
      values.push_back(static_cast<float>(unit.vector_start(k, rng.uniform(), settings.place)));
  builder.set(vectors, values);
}

// The heads of a matrix-state unit and its trained rows [K,H].
void set_heads(const Builder& builder, const UnitSettings& settings, ops::Cell& cell) {
  const kernels::MatrixState& state = *settings.unit->matrix_state;
  const std::int64_t h = settings.width;
  const int k = settings.state_width;
  if (h % settings.heads() != 0)
    fail(ExitStatus::usage, "state-heads: {} does not divide the width {} of unit {}",
         settings.heads(), h, settings.unit->name);
  if (k < 1 || k > kernels::max_state_width)
    fail(ExitStatus::usage, "state-width: {} is not from 1 to {}", k, kernels::max_state_width);
  cell.heads = settings.heads();
  cell.state_width = k;
  if (state.rows == 0) return;
  cell.rows = &builder.add("rows", {k, h}, Builder::Init::zero);
  if (!state.row_start) return;
  std::vector<float> values;
  for (int i = 0; i < k; ++i)
    values.insert(values.end(), static_cast<std::size_t>(h),
                  static_cast<float>(state.row_start(i)));
  builder.set(*cell.rows, values);
}

}  // namespace

ops::Cell make_cell(const Builder& builder, const UnitSettings& settings) {
  const kernels::Unit& unit = *settings.unit;
  const std::int64_t h = settings.width;
  const int planes = unit.recurrents + unit.late;
  ops::Cell cell;
  cell.name = builder.scope();
  cell.unit = &unit;
  cell.width = h;
  cell.groups = settings.groups;
  cell.rearrange = settings.rearrange && settings.groups > 1;
  if (planes > 0) {
    cell.recurrent = &add_matrix(builder, "recurrent_projection", settings, h, planes,
                                 Builder::Init::orthogonal);
    if (settings.layer_normalization) {
      const Normalization norm(builder, "recurrent_projection_norm", planes * h);
      cell.gain = norm.gain;
      cell.norm_bias = norm.bias;
    } else if (unit.bias || settings.gates.reads(unit, kernels::BiasOf::state)) {
      cell.bias = &builder.add("recurrent_projection_bias", {planes * h}, Builder::Init::zero);
    }
  }
  if (unit.vectors > 0) {
    cell.vectors = &builder.add("vectors", {unit.vectors, h}, Builder::Init::zero);
    start_vectors(builder, settings, *cell.vectors);
  }
  if (unit.matrix_state) set_heads(builder, settings, cell);
  settings.gates.set(builder, unit, kernels::BiasOf::state,
                     cell.norm_bias ? cell.norm_bias : cell.bias, settings.width);
  settings.gates.set(builder, unit, kernels::BiasOf::vector, cell.vectors, h);
  if (unit.position_vectors > 0) {
    if (settings.positions < 1)
      fail(ExitStatus::usage,
           "positions: {}; unit {} trains vectors of each position and needs at least 1",
           settings.positions, unit.name);
    cell.positions = &builder.add("positions", {settings.positions, unit.position_vectors * h},
                                  Builder::Init::one);
  }
  return cell;
}

std::int64_t saved_floats(const ops::Cell& cell, float state_dropout) {
  const kernels::Unit& unit = *cell.unit;
  const int products = unit.recurrents + unit.late;
  const bool rearranged = (cell.rearrange || state_dropout > 0) && unit.recurrents > 0;
  return cell.width * (unit.states + products * (cell.gain ? 2 : 1) + (unit.late > 0 ? 1 : 0) +
                       (rearranged ? 1 : 0));
}

bool drops(const Tape& tape, const ops::Cell& cell, float p) {
  return p > 0 && tape.recording() && cell.unit->has_recurrent_product();
}

ops::Cell with_dropout(Tape& tape, const ops::Cell& cell, float p, std::int64_t batch) {
  ops::Cell dropped = cell;
  Tensor ones = tape.context().empty({1, batch, cell.width});
  dispatch(tape.context(),
           [&](const auto& backend) { kernels::fill(backend, ones.f32(), ones.elements(), 1.0f); });
  dropped.dropout = ops::dropout(tape, tape.constant(std::move(ones)), p)->value;
  return dropped;
}

void refuse_matrix_state(const UnitSettings& settings, const char* layer, const char* instead) {
  if (settings.unit->matrix_state)
    fail(ExitStatus::usage, "unit {}: a unit with a matrix state does not run in {}; use {}",
         settings.unit->name, layer, instead);
}

}  // namespace nmt
