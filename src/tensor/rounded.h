#pragma once

#include "kernels/products/product_input.h"
#include "tensor/context.h"

#include <cstdint>
#include <utility>

namespace nmt {

/// The data of a rounded copy; null if there is none.
inline kernels::Bfloat16* copy_of(const Tensor& rounded) {
  return rounded ? rounded.data<std::uint16_t>() : nullptr;
}

/// A matrix for several products: on a device whose products round their inputs, with a copy that
/// is rounded once; elsewhere the matrix alone. The matrix must live as long and not change.
class Rounded {
 public:
  Rounded() = default;
  /// x [rows,columns] without gaps.
  Rounded(const Context& context, std::int64_t rows, std::int64_t columns, const float* x) : x_(x) {
    dispatch(context, [&](const auto& backend) {
      if (!kernels::reads_rounded(backend)) return;
      copy_ = context.empty({rows, kernels::rounded_stride(columns)}, Dtype::bf16);
      kernels::round_matrix(backend, rows, columns, x, copy_.data<std::uint16_t>());
    });
  }
  /// x with the copy that a kernel writes; `copy` may be empty.
  Rounded(const float* x, Tensor copy) : x_(x), copy_(std::move(copy)) {}
  explicit operator bool() const { return x_ != nullptr; }
  /// Whether this is the matrix, or its copy.
  bool is_of(const float* x) const { return x_ && x_ == x; }
  kernels::ProductInput input() const { return {x_, copy()}; }
  /// The rounded copy; null if there is none.
  kernels::Bfloat16* copy() const { return copy_of(copy_); }

 private:
  const float* x_ = nullptr;
  Tensor copy_;
};

/// Room for the rounded copy of a matrix [..,columns] that a kernel writes beside the matrix. Empty
/// on a device whose products read none, and where rows of the copy would have gaps.
inline Tensor allocate_rounded(const Context& context, const Shape& shape) {
  return dispatch(context, [&](const auto& backend) -> Tensor {
    const std::int64_t columns = shape[-1];
    if (!kernels::reads_rounded(backend) || kernels::rounded_stride(columns) != columns) return {};
    return context.empty(shape, Dtype::bf16);
  });
}

}  // namespace nmt
