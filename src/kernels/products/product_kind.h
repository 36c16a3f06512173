#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace nmt::kernels {

struct Product;

/// Kinds of training products that processors and libraries compute at different relative speeds.
enum class ProductKind {
  weight_gradient,  ///< A^T B
  long_sums,        ///< A B and A B^T with K of 512 or more
  few_rows,         ///< the same with shorter sums and fewer than 1,000 rows
  many_rows,        ///< the others
};
inline constexpr int product_kinds = 4;
ProductKind kind_of(const Product& p);

/// The kinds for which a library is faster than the own tiles.
using LibraryKinds = std::array<bool, product_kinds>;
inline constexpr LibraryKinds all_kinds{true, true, true, true};
/// As measured on AMD Zen 4 with this library (docs/benchmarks/processors.md).
inline constexpr LibraryKinds zen4_kinds{true, true, true, false};
inline constexpr std::string_view zen4_library = "oneDNN 2.6.3";

}  // namespace nmt::kernels
