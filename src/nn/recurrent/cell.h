#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/builder.h"
#include "nn/recurrent/unit_settings.h"

#include <cstdint>

namespace nmt {

/// The recurrent parameters of a unit: recurrent_projection [H,(recurrents+late)*H], with groups
/// [K,H/K,(recurrents+late)*H/K], its bias or normalization, vectors.
ops::Cell make_cell(const Builder& builder, const UnitSettings& settings);

/// Floats of one position that a cell keeps for its backward pass: its states, the products with
/// them, with layer normalization their normalized values as well, the late value, rearranged
/// states or those with dropout.
std::int64_t saved_floats(const ops::Cell& cell, float state_dropout);
/// Whether a pass drops some of what the cell's products read.
bool drops(const Tape& tape, const ops::Cell& cell, float p);
/// A cell with dropout of what its products read in a pass over `batch` sentences.
ops::Cell with_dropout(Tape& tape, const ops::Cell& cell, float p, std::int64_t batch);
/// Error (usage): a unit with a matrix state in a layer with two units a step, which carries
/// vectors from one to the other. `instead`: the option to use.
void refuse_matrix_state(const UnitSettings& settings, const char* layer, const char* instead);

}  // namespace nmt
