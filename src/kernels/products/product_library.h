#pragma once

#include <cstdint>
#include <string>

namespace nmt::kernels {

struct Product;

/// oneDNN's matrix products in the place of our own tiles, for training: put into Cpu::products,
/// gemm() and the gradient of softmax_loss() use it where docs/design/products.md found it faster.
/// Its results may depend, in the last bits, on the number of rows and on the threads, so decoding,
/// which packs its weights, never does. It is opened by name when asked for: programs that do not
/// train neither load nor need it.
class ProductLibrary {
 public:
  /// The installed library; null where there is none that can be used, and then *why says so.
  static const ProductLibrary* open(std::string* why);
  /// "oneDNN 2.6.3".
  const std::string& name() const { return name_; }
  /// Whether it is the faster one for this product.
  bool takes(const Product& p) const;
  /// As product_part(): rows [m_begin, m_end) and columns [n_begin, n_end) on the calling thread
  /// alone. Errors: what oneDNN says.
  void run(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
           std::int64_t n_end) const;

 private:
  explicit ProductLibrary(void* handle);

  struct Functions;
  const Functions* functions_;
  std::string name_;
};

}  // namespace nmt::kernels
