#pragma once

// Products of a block with its slice of a matrix, in both number types.

#include "cuda/kernels/recurrent/persistent/multiply_adds.h"
#include "cuda/kernels/recurrent/persistent/tensor_cores.h"

namespace nmt::cuda {

/// Multiplies rows [first, first + rows) of the input, at most tile_rows, with the slice. Returns
/// with the sums in `space`, where output() reads them; barriers before and after are included.
/// between() is called after the multiplications and before the sums are complete, so that its
/// loads overlap with the sums.
template <int max_columns, class Number, class Between>
__device__ __forceinline__ void slice_product(const SliceLayout& l, const Number* weights,
                                              const SliceInput& in, std::int64_t first, int rows,
                                              unsigned char* space, Between between) {
  using Sums = std::conditional_t<std::is_same_v<Number, float>, MultiplyAdds<max_columns>,
                                  TensorCores<max_columns>>;
  __syncthreads();  // the space has been read
  Sums product(l, in, first, rows, space);
  product.multiply(weights);
  __syncthreads();
  product.store(between);
}

}  // namespace nmt::cuda
