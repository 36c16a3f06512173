#pragma once

#include "kernels/handles.h"
#include "kernels/products/product_kind.h"

#include <cstdint>
#include <string>

namespace nmt::kernels {

struct Bf16Products;

class OneDnn;

/// How gemm() and its kin compute products where weights are not packed for decoding:
/// Cpu::products. Null means our own tiles in float32.
///
/// one_dnn(): by oneDNN, in training, where it is faster (docs/design/products.md). Decoding uses
/// packed weights and never oneDNN, since the last bits of its results may depend on the number of
/// rows and threads.
///
/// bfloat16(): gemm(), pack(), gemm_packed(), their batched forms, the recurrent layers and
/// softmax_loss() round the inputs of products to bfloat16 and compute them by own tiles with sums
/// in float32 (bf16/bf16_products.h). Matrices packed with it must be multiplied with it.
///
/// bfloat16x3(): the same with three numbers in bfloat16 for an input, by AMX: products with the
/// precision of float32 (Bf16Products::parts). Each output has a smaller error on average than a
/// chain of multiply-adds in float32. Infinite inputs give NaN, and so do those above the largest
/// number in bfloat16, 3.39e38.
///
/// separate(): for models in int8, gemm(), gemm_packed() and their batched forms compute the same
/// bits on every instruction set (separate.h).
class ProductMethod {
 public:
  static const ProductMethod& bfloat16();
  static const ProductMethod& separate();
  /// Null: amx_split_products() is.
  static const ProductMethod* bfloat16x3();
  /// bfloat16() or bfloat16x3() by these products.
  explicit ProductMethod(const Bf16Products& products);
  bool is_library() const { return kind_ == Kind::library; }
  bool rounds_inputs() const;
  /// Those of bfloat16() or bfloat16x3(), or null.
  const Bf16Products* bf16_products() const { return rounded_; }
  bool rounds_separately() const { return kind_ == Kind::separate; }
  /// OneDnn::open(): null, with the reason in *why, when no library is usable.
  static const ProductMethod* one_dnn(std::string* why);
  /// For example "oneDNN 2.6.3" or "own tiles, bfloat16 by AMX".
  const std::string& name() const { return name_; }
  /// From now on it computes the products of these kinds; zen4_kinds initially. Not while products
  /// are computed.
  void use_for(const LibraryKinds& kinds) const { kinds_ = kinds; }
  /// Whether it computes this product: one of its kinds in float32, with plain matrices of at least
  /// 32 rows.
  bool takes(const Product& p) const;
  /// OneDnn::run().
  void run(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
           std::int64_t n_end) const;

 private:
  enum class Kind { library, tiles, separate };
  explicit ProductMethod(const OneDnn& library);
  ProductMethod(Kind kind, const char* name) : kind_(kind), name_(name) {}

  Kind kind_;
  const OneDnn* library_ = nullptr;        // of a library
  const Bf16Products* rounded_ = nullptr;  // of tiles
  std::string name_;
  mutable LibraryKinds kinds_ = zen4_kinds;
};

/// The products of bfloat16() or bfloat16x3(); null: inputs are used as they are.
inline const Bf16Products* bf16_products(const Cpu& cpu) {
  return cpu.products ? cpu.products->bf16_products() : nullptr;
}
/// Whether products of training have inputs of the precision of bfloat16.
inline bool rounds_inputs(const Cpu& cpu) {
  return cpu.products && cpu.products->rounds_inputs();
}
/// Whether products round after each multiplication and after each addition.
inline bool rounds_separately(const Cpu& cpu) {
  return cpu.products && cpu.products->rounds_separately();
}

}  // namespace nmt::kernels
