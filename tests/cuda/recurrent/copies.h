#pragma once

// Recurrences with copies of matrices rounded for products (kernels/products/product_input.h), on a
// device whose products read bfloat16: the same bits as without them.

#include "config/precision.h"
#include "kernels/products/bfloat16.h"
#include "tests/cuda/cells.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {

using kernels::Bfloat16;

/// A buffer of bfloat16 on the device, or none.
class MaybeRounded {
 public:
  MaybeRounded(Parity& p, std::int64_t n) {
    constexpr Bfloat16 nan{0x7FC0};
    if (n > 0)
      buffer_.emplace(p.values(std::vector<Bfloat16>(static_cast<std::size_t>(n), nan), false));
  }
  template <class Backend>
  Bfloat16* operator()(const Backend& on) const {
    return buffer_ ? (*buffer_)(on) : nullptr;
  }

 private:
  std::optional<Both<Bfloat16>> buffer_;
};

/// Numbers that bfloat16 has, in float32 or, where `rounded`, in bfloat16 alone.
class Projections {
 public:
  Projections(Parity& p, std::int64_t n, bool rounded) {
    std::vector<float> numbers(static_cast<std::size_t>(n));
    std::vector<Bfloat16> copies(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      copies[i] = kernels::to_bf16(2 * p.rng().uniform() - 1);
      numbers[i] = kernels::from_bf16(copies[i]);
    }
    if (rounded)
      rounded_.emplace(p.values(copies, false));
    else
      plain_.emplace(p.values(numbers, true));
  }
  template <class Backend>
  const float* plain(const Backend& on) const {
    return plain_ ? (*plain_)(on) : nullptr;
  }
  template <class Backend>
  const Bfloat16* rounded(const Backend& on) const {
    return rounded_ ? (*rounded_)(on) : nullptr;
  }

 private:
  std::optional<BothFloats> plain_;
  std::optional<Both<Bfloat16>> rounded_;
};

/// What a run has left on a device, by name.
class Results {
 public:
  explicit Results(const Cuda& on) : on_(on) { on.device->synchronize(); }
  void add(const std::string& name, std::int64_t n, const float* x) {
    if (x) values_[name] = download(n, x);
  }
  /// `copy` where it is given, else x as it would be rounded.
  void add_rounded(const std::string& name, std::int64_t n, const float* x, const Bfloat16* copy) {
    if (!x && !copy) return;
    std::vector<float>& numbers = values_[name];
    if (copy)
      for (const Bfloat16 value : download(n, copy)) numbers.push_back(kernels::from_bf16(value));
    else
      for (const float value : download(n, x))
        numbers.push_back(kernels::from_bf16(kernels::to_bf16(value)));
  }
  void add(const kernels::Unit& unit, std::int64_t rows, std::int64_t batch, std::int64_t h,
           float* const* states, float* const* dinitial) {
    for (int s = 0; s < unit.states; ++s) {
      add(fmt::format("states {}", s), rows * h, states[s]);
      add(fmt::format("dinitial {}", s), batch * h, dinitial[s]);
    }
  }
  /// dx, du and dlate are compared as products read them, rounded.
  void add(const std::string& name, const kernels::Unit& unit, std::int64_t rows, std::int64_t h,
           const kernels::CellRecord& record, const kernels::CellGradient& g) {
    add_rounded(name + " late value", rows * h, record.late_value, record.late_value_rounded);
    add_rounded(name + " dx", rows * unit.inputs * h, g.dx, g.dx_rounded);
    add_rounded(name + " du", rows * unit.recurrents * h, g.du, g.du_rounded);
    add_rounded(name + " dlate", rows * unit.late * h, g.dlate, g.dlate_rounded);
    add(name + " dvectors", unit.vectors * h, g.dvectors);
    add(name + " dgain", (unit.recurrents + unit.late) * h, g.dgain);
    add(name + " dnorm_bias", (unit.recurrents + unit.late) * h, g.dnorm_bias);
  }

  /// allowed: the relative difference of each matrix. 0: the same bits.
  void expect_equal(const Results& other, double allowed, const std::string& text) const {
    ASSERT_EQ(values_.size(), other.values_.size());
    for (const auto& [name, values] : values_) {
      const std::vector<float>& others = other.values_.at(name);
      ASSERT_EQ(values.size(), others.size()) << name;
      double difference = 0, squares = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        difference += std::pow(values[i] - others[i], 2);
        squares += std::pow(values[i], 2);
      }
      EXPECT_LE(std::sqrt(difference), allowed * std::sqrt(squares)) << name << " of " << text;
    }
  }

 private:
  template <class T>
  std::vector<T> download(std::int64_t n, const T* x) const {
    std::vector<T> values(static_cast<std::size_t>(n));
    on_.device->from_device(values.data(), x, values.size() * sizeof(T));
    return values;
  }
  Cuda on_;
  std::map<std::string, std::vector<float>> values_;
};

/// The copies of a cell's record and gradients, `rows` rows of [T,B]. dx: in bfloat16 alone, or
/// beside float32.
class CellCopies {
 public:
  CellCopies(Parity& p, const kernels::Unit& unit, std::int64_t rows, std::int64_t h, bool used,
             bool beside)
      : beside_(beside),
        late_value_(p, used && unit.late > 0 ? rows * h : 0),
        dx_(p, used ? rows * unit.inputs * h : 0),
        du_(p, used ? rows * unit.recurrents * h : 0),
        dlate_(p, used ? rows * unit.late * h : 0) {}
  template <class Backend>
  void set(const Backend& on, kernels::CellRecord& record) const {
    record.late_value_rounded = late_value_(on);
  }
  template <class Backend>
  void set(const Backend& on, kernels::CellGradient& g) const {
    g.dx_rounded = dx_(on);
    if (g.dx_rounded && !beside_) g.dx = nullptr;
    g.du_rounded = du_(on);
    g.dlate_rounded = dlate_(on);
  }

 private:
  bool beside_;
  MaybeRounded late_value_, dx_, du_, dlate_;
};

}  // namespace nmt::test
