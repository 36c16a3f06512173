#pragma once

// Recurrent cells on both devices, for the parity tests of the drivers.

#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/recurrent/recurrence.h"
#include "tests/cuda/table.h"

#include <array>
#include <cmath>
#include <vector>

namespace nmt::test {

using BothFloats = Both<float>;

/// A buffer, or none.
class Maybe {
 public:
  Maybe() = default;
  explicit Maybe(const BothFloats& buffer) { buffer_.push_back(buffer); }
  Maybe(Parity& p, std::int64_t n) {
    if (n > 0) buffer_.emplace_back(p.floats(n));
  }
  template <class Backend>
  float* operator()(const Backend& on) const {
    return buffer_.empty() ? nullptr : buffer_[0](on);
  }

 private:
  std::vector<BothFloats> buffer_;
};

/// The unit and the sizes of a cell.
struct CellSizes {
  const kernels::Unit* unit;
  std::int64_t width, groups = 1;
  bool rearrange = false, normal = false, dropout = false;
  std::int64_t positions = 3;  ///< rows of the table of positions, for units that have one
  std::string text() const {
    return fmt::format("{} {} width {} groups {} rearrange {} normal {} dropout {}", unit->name,
                       unit->variant, width, groups, rearrange, normal, dropout);
  }
};
/// Bounds the rounding errors of a recurrence, which grow from step to step.
constexpr double recurrence_tolerance = 1e-4;

/// A product's weights [in, planes*width], dense or in groups, with room for both packings.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(Parity& p, std::int64_t groups, std::int64_t in, std::int64_t planes,
                std::int64_t width)
      : groups_(groups), in_(in), wide_(planes * width) {
    if (planes == 0) return;
    blocks_ = {groups, planes, in / groups, width / groups, planes * width / groups};
    // At this scale a state does not grow from step to step, nor does its rounding error, in a unit
    // without a bound (srn).
    std::vector<float> weights(static_cast<std::size_t>(in * wide_ / groups));
    const float scale = 1 / std::sqrt(static_cast<float>(in));
    for (float& w : weights) w = scale * (2 * p.rng().uniform() - 1);
    weight_ = Maybe(p.values(weights, true));
    forward_ = {p.scratch(forward_size(), forward_size())};
    backward_ = {p.scratch(backward_size(), backward_size())};
  }
  template <class Backend>
  void pack(const Backend& on) const {
    if (wide_ == 0) return;
    if (groups_ == 1) {
      kernels::pack(on, false, in_, wide_, weight_(on), wide_, forward(on));
      kernels::pack(on, true, wide_, in_, weight_(on), wide_, backward(on));
    } else {
      kernels::pack_batched(on, blocks_.product(), false, blocks_.k, blocks_.n, weight_(on),
                            blocks_.ld, forward(on));
      kernels::pack_batched(on, blocks_.input_gradient(), true, blocks_.n, blocks_.k, weight_(on),
                            blocks_.ld, backward(on));
    }
  }
  template <class Backend>
  float* forward(const Backend& on) const {
    return forward_.empty() ? nullptr : forward_[0](on);
  }
  template <class Backend>
  float* backward(const Backend& on) const {
    return backward_.empty() ? nullptr : backward_[0](on);
  }

 private:
  std::int64_t forward_size() const {
    return groups_ == 1 ? kernels::packed_size(in_, wide_)
                        : kernels::packed_batched_size(blocks_.product(), blocks_.k, blocks_.n);
  }
  std::int64_t backward_size() const {
    return groups_ == 1
               ? kernels::packed_size(wide_, in_)
               : kernels::packed_batched_size(blocks_.input_gradient(), blocks_.n, blocks_.k);
  }

  std::int64_t groups_ = 1, in_ = 0, wide_ = 0;
  kernels::BlockDiagonal blocks_;
  Maybe weight_;
  std::vector<BothFloats> forward_, backward_;
};

/// A cell with the record and the gradients of `rows` rows of [T,B], B = `batch`.
class BothCell {
 public:
  BothCell(Parity& p, const CellSizes& sizes, std::int64_t rows, std::int64_t batch)
      : sizes_(sizes) {
    const std::int64_t h = sizes.width, k = sizes.unit->inputs, r = sizes.unit->recurrents,
                       l = sizes.unit->late;
    const std::int64_t positions = sizes.unit->position_vectors * h * sizes.positions;
    recurrent_ = PackedWeights(p, sizes.groups, h, r, h);
    late_ = PackedWeights(p, sizes.groups, h, l, h);
    const std::int64_t normal = sizes.normal ? (r + l) * h : 0;
    parameters_ = {Maybe(p, (r + l) * h), Maybe(p, normal), Maybe(p, normal),
                   Maybe(p, sizes.unit->vectors * h), Maybe(p, positions)};
    const bool rearranged = (sizes.rearrange || sizes.dropout) && r > 0;
    dropout_rows_ = sizes.dropout ? batch : 0;
    dropout_ = Maybe(p, dropout_rows_ * h);
    record_ = {Maybe(p, rearranged ? rows * h : 0),
               Maybe(p, rows * r * h),
               Maybe(p, normal ? rows * r * h : 0),
               Maybe(p, normal ? rows * r : 0),
               Maybe(p, rows * l * h),
               Maybe(p, normal ? rows * l * h : 0),
               Maybe(p, normal ? rows * l : 0),
               Maybe(p, l > 0 ? rows * h : 0)};
    gradient_ = {Maybe(p, rows * k * h), Maybe(p, rows * r * h),
                 Maybe(p, rows * l * h), Maybe(p, sizes.unit->vectors * h),
                 Maybe(p, positions),    Maybe(p, normal),
                 Maybe(p, normal)};
  }

  template <class Backend>
  kernels::Cell cell(const Backend& on) const {
    recurrent_.pack(on);
    late_.pack(on);
    const auto& [bias, gain, norm_bias, vectors, positions] = parameters_;
    kernels::Cell c;
    c.unit = sizes_.unit;
    c.width = sizes_.width;
    c.groups = sizes_.groups;
    c.rearrange = sizes_.rearrange;
    c.recurrent = recurrent_.forward(on);
    c.late = late_.forward(on);
    c.bias = bias(on);
    c.gain = gain(on);
    c.norm_bias = norm_bias(on);
    c.vectors = vectors(on);
    c.positions = positions(on);
    c.position_rows = c.positions ? sizes_.positions : 0;
    c.dropout = dropout_(on);
    c.dropout_rows = dropout_rows_;
    c.recurrent_transposed = recurrent_.backward(on);
    c.late_transposed = late_.backward(on);
    return c;
  }
  template <class Backend>
  kernels::CellRecord record(const Backend& on) const {
    const auto& r = record_;
    return {r[0](on), r[1](on), r[2](on), r[3](on), r[4](on), r[5](on), r[6](on), r[7](on)};
  }
  template <class Backend>
  kernels::CellGradient gradient(const Backend& on) const {
    const auto& g = gradient_;
    return {g[0](on), g[1](on), g[2](on), g[3](on), g[4](on), g[5](on), g[6](on)};
  }

 private:
  CellSizes sizes_;
  PackedWeights recurrent_, late_;
  Maybe dropout_;
  std::int64_t dropout_rows_ = 0;
  std::array<Maybe, 5> parameters_;
  std::array<Maybe, 8> record_;
  std::array<Maybe, 7> gradient_;
};

/// The state vectors of a unit, `n` floats each.
class BothStates {
 public:
  BothStates(Parity& p, int states, std::int64_t n) {
    for (int s = 0; s < states; ++s) states_.push_back(p.floats(n));
  }
  template <class Backend, class T>
  void set(const Backend& on, T* (&to)[kernels::max_states]) const {
    for (std::size_t s = 0; s < states_.size(); ++s) to[s] = states_[s](on);
  }

 private:
  std::vector<BothFloats> states_;
};

/// [T,B], 1 where a sentence has a symbol: the first sentence has all steps, every third one starts
/// late, and the others end early, sentence b by b * distance steps.
inline BothFloats sentence_mask(Parity& p, std::int64_t steps, std::int64_t batch,
                                std::int64_t distance = 1) {
  std::vector<float> mask(static_cast<std::size_t>(steps * batch), 1.0f);
  for (std::int64_t t = 0; t < steps; ++t)
    for (std::int64_t b = 1; b < batch; ++b) {
      const std::int64_t masked = b * distance % steps;
      if (b % 3 == 2 ? t < masked : t >= steps - masked)
        mask[static_cast<std::size_t>(t * batch + b)] = 0.0f;
    }
  return p.values(mask, true);
}

/// body(cell) for the cells of the drivers' tests: every unit, with and without normalization,
/// groups and rearrangement.
template <class Body>
void each_cell(Body&& body) {
  for (const kernels::Unit& unit : kernels::units()) {
    body(CellSizes{.unit = &unit, .width = 33});
    if (!unit.has_recurrent_product()) continue;
    body(CellSizes{.unit = &unit, .width = 31, .normal = true});
    body(CellSizes{.unit = &unit, .width = 12, .groups = 3, .dropout = true});
    body(CellSizes{.unit = &unit, .width = 12, .groups = 4, .rearrange = true, .normal = true});
    body(CellSizes{.unit = &unit, .width = 12, .groups = 4, .rearrange = true, .dropout = true});
  }
}

}  // namespace nmt::test
