#include "kernels/products/product_method.h"

#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/one_dnn.h"
#include "kernels/products/product.h"

#include <fmt/format.h>

namespace nmt::kernels {

ProductMethod::ProductMethod(const OneDnn& library)
    : kind_(Kind::library), library_(&library), name_(library.name()) {}

ProductMethod::ProductMethod(const Bf16Products& products)
    : kind_(Kind::tiles), rounded_(&products), name_(fmt::format("own tiles, {}", products.name)) {}

const ProductMethod& ProductMethod::bfloat16() {
  static const ProductMethod rounding(kernels::bf16_products());
  return rounding;
}

const ProductMethod* ProductMethod::bfloat16x3() {
  const Bf16Products* const products = amx_split_products();
  if (!products) return nullptr;
  static const ProductMethod splitting(*products);
  return &splitting;
}

bool ProductMethod::rounds_inputs() const {
  return rounded_ && rounded_->parts == 1;
}

const ProductMethod& ProductMethod::separate() {
  static const ProductMethod rounding(Kind::separate, "own tiles, each operation rounded");
  return rounding;
}

const ProductMethod* ProductMethod::one_dnn(std::string* why) {
  const OneDnn* const opened = OneDnn::open(why);
  if (!opened) return nullptr;
  static const ProductMethod library(*opened);
  return &library;
}

bool ProductMethod::takes(const Product& p) const {
  if (kind_ != Kind::library || p.packed || p.rounded || p.m < 32 || p.m * p.n * p.k < 32 * 1024)
    return false;
  return kinds_[static_cast<std::size_t>(kind_of(p))];
}

ProductKind kind_of(const Product& p) {
  if (p.transpose_a) return ProductKind::weight_gradient;
  if (p.k >= 512) return ProductKind::long_sums;
  return p.m < 1000 ? ProductKind::few_rows : ProductKind::many_rows;
}

void ProductMethod::run(const Product& p, std::int64_t m_begin, std::int64_t m_end,
                        std::int64_t n_begin, std::int64_t n_end) const {
  library_->run(p, m_begin, m_end, n_begin, n_end);
}

}  // namespace nmt::kernels
