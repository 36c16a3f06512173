#pragma once

#include "kernels/products/product.h"

#include <cstdint>

namespace nmt::kernels {

/// product_part() of float32 with a rounding after each multiplication and after each addition, so
/// the outputs are the same bits on every instruction set. Own tiles fuse the two where the
/// instruction set can, which is faster. A must not be transposed.
void separate_product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end,
                           std::int64_t n_begin, std::int64_t n_end);

}  // namespace nmt::kernels
