#pragma once

#include "kernels/products/rounded.h"
#include "tensor/context.h"

namespace nmt {

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
  explicit operator bool() const { return x_ != nullptr; }
  kernels::ProductInput input() const {
    return {x_, copy_ ? copy_.data<std::uint16_t>() : nullptr};
  }

 private:
  const float* x_ = nullptr;
  Tensor copy_;
};

}  // namespace nmt
