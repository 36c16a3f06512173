#pragma once

#include <cstdint>
#include <string_view>

namespace nmt::kernels {

struct Product;

/// Products on the CPU whose inputs are rounded to bfloat16, with sums in float32: own tiles of one
/// instruction set.
struct Bf16Products {
  std::string_view name;  ///< for example "bfloat16 by AMX"
  bool is_native;         ///< by instructions for bfloat16, of pairs (pairs.h)
  /// Numbers in bfloat16 whose sum stands for an input: 1, or 3 for the precision of float32.
  int parts;
  /// Elements of 4 bytes in a column of a packed [k,n] matrix: pairs where is_native. At most k
  /// with one part.
  std::int64_t (*column_elements)(std::int64_t k);
  /// Packs columns [n_begin, n_end) of op(B) [k,n] into their place in `packed`, which has
  /// packed_size(this, k, n) floats. n_begin is a multiple of packed_panel().
  void (*pack)(bool transpose_b, std::int64_t k, std::int64_t n_begin, std::int64_t n_end,
               const float* b, std::int64_t ldb, float* packed);
  /// product_part() of product.h, of matrices that are not empty.
  void (*part)(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
               std::int64_t n_end);
};

/// Those of this processor: by AMX, by AVX-512 BF16 or, with each input rounded by itself, in
/// float32.
const Bf16Products& bf16_products();
/// bf16_products() where they are faster than float32, for decoding: by AMX, and by AVX-512 BF16
/// where has_fast_pairs(); else null. The processor alone decides, no measurement, since
/// translations depend on it.
const Bf16Products* fast_bf16_products();
/// By AMX; null: the processor, the operating system or the loaded kernels lack it or AVX-512 BF16,
/// its tiles fail self_check.h, or the environment variable NMT_AMX or NMT_BF16 is 0.
const Bf16Products* amx_products();
/// Products of float32 by the tiles of AMX: an input is the sum of three numbers in bfloat16, which
/// have all of its 24 bits, and six of the nine products of the parts are computed (Henry, Tang and
/// Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
/// Computations", ARITH 2019). Null where amx_products() is.
const Bf16Products* amx_split_products();

/// Floats of a packed [k,n] matrix for these products; null: for those of float32.
std::int64_t packed_size(const Bf16Products* products, std::int64_t k, std::int64_t n);

}  // namespace nmt::kernels
