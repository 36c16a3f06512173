#pragma once

#include <cstdint>
#include <string>

namespace nmt::kernels {

struct Product;

/// oneDNN's GEMM in float32. The library is loaded with dlopen() on request: programs that do not
/// train do not need it. The last bits of its results may depend on the number of rows and threads.
class OneDnn {
 public:
  /// Loads the installed library. Returns null, with the reason in *why, when none is usable.
  static const OneDnn* open(std::string* why);
  /// For example "oneDNN 2.6.3".
  const std::string& name() const { return name_; }
  /// product_part(): rows [m_begin, m_end) and columns [n_begin, n_end) on the calling thread.
  /// Error (failed): oneDNN returns an error status.
  void run(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
           std::int64_t n_end) const;

 private:
  struct Functions;
  explicit OneDnn(const Functions& functions);
  const Functions& functions_;
  std::string name_;
};

}  // namespace nmt::kernels
