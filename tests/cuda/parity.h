#pragma once

// One case of the parity table: buffers on the CPU and on the CUDA device, a kernel called on both,
// and a comparison of all buffers afterwards, including those that the kernel only reads.
//
//   void check_add_bias(Parity& p) {
//     for (std::int64_t width : odd_sizes) {
//       p.sizes("width {}", width);
//       const auto x = p.floats(7 * width), bias = p.floats(width), y = p.floats(7 * width);
//       p.run([&](const auto& on) { add_bias(on, 7, width, x(on), bias(on), y(on)); });
//     }
//   }

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"
#include "tensor/cuda_device.h"
#include "tests/kernels/guarded_memory.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

namespace nmt::test {

inline constexpr std::int64_t odd_sizes[] = {1, 3, 31, 33, 257};

/// Memory on both sides, exactly as large as the contents: on the host beside a protected page, on
/// the device 256-byte aligned.
class Buffer {
 public:
  enum class Kind { bytes, floats, doubles };
  Buffer(CudaDevice& device, MemorySource& source, std::string name,
         const std::vector<char>& contents, Kind kind);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* host() { return host_.data(); }
  char* device() { return data_; }
  /// Downloads the device's contents; "" or how they differ.
  std::string difference(double tolerance);

 private:
  CudaDevice& device_;
  MemorySource& source_;
  std::string name_;
  Guarded<char> host_;
  Kind kind_;
  char* data_ = nullptr;
};

/// A buffer's address on either side: x(cpu), x(cuda).
template <class T>
class Both {
 public:
  explicit Both(Buffer& buffer) : buffer_(&buffer) {}
  T* operator()(const Cpu&) const { return reinterpret_cast<T*>(buffer_->host()); }
  T* operator()(const Cuda&) const { return reinterpret_cast<T*>(buffer_->device()); }

 private:
  Buffer* buffer_;
};

class Parity {
 public:
  enum class Runs { both_sides, cpu_alone };
  explicit Parity(CudaDevice& device, Runs runs = Runs::both_sides);
  ~Parity();

  /// Starts a new set of buffers; failures print the text.
  template <class... Args>
  void sizes(fmt::format_string<Args...> format, Args&&... args) {
    start(fmt::format(format, std::forward<Args>(args)...));
  }
  /// Floats uniform in [mean-1, mean+1), different at every call.
  Both<float> floats(std::int64_t n, float mean = 0.0f);
  /// Integers uniform in [min, below), or the given ones.
  Both<std::int32_t> integers(std::int64_t n, std::int32_t below, std::int32_t min = 0);
  Both<std::int32_t> integers(const std::vector<std::int32_t>& values);
  template <class T>
  Both<T> values(const std::vector<T>& values, bool is_float) {
    using Kind = Buffer::Kind;
    const char* bytes = reinterpret_cast<const char*>(values.data());
    const Kind kind = std::is_same_v<T, double> ? Kind::doubles
                      : is_float                ? Kind::floats
                                                : Kind::bytes;
    return Both<T>(add({bytes, bytes + values.size() * sizeof(T)}, kind));
  }
  Both<double> doubles(const std::vector<double>& x) { return values(x, true); }
  /// Floats that are not compared.
  Both<float> scratch(std::int64_t cpu_floats, std::int64_t cuda_floats);
  /// As many as size(backend) says for each backend.
  template <class Size>
  Both<float> scratch_of(Size&& size) {
    return scratch(size(cpu()), size(cuda()));
  }

  /// Calls body(cpu) and body(cuda) and compares all buffers: |a - b| <= tolerance (|a| + root mean
  /// square of a).
  template <class Body>
  void run(Body&& body, double tolerance = 2e-6) {
    body(cpu());
    if (runs_ == Runs::cpu_alone) return;
    body(cuda());
    compare(tolerance);
  }
  /// Calls cpu_body(cpu), the reference, and cuda_body(cuda), which may use other CudaDevice
  /// objects of the same GPU.
  template <class CpuBody, class CudaBody>
  void run(CpuBody&& cpu_body, CudaBody&& cuda_body, double tolerance) {
    device_.synchronize();
    cpu_body(cpu());
    if (runs_ == Runs::cpu_alone) return;
    cuda_body(cuda());
    compare(tolerance);
  }
  int device_index() const { return device_.index(); }
  /// A number that a kernel returns on the host.
  void same(double cpu, double cuda, double tolerance);
  Cpu cpu() { return {&pool_}; }
  Cuda cuda() { return device_.handle(); }
  /// Expects the n numbers of x on the device, rounded, in `rounded`: the same bits.
  void expect_rounded(std::int64_t n, const float* x, const kernels::Bfloat16* rounded);
  Rng& rng() { return rng_; }

 private:
  void start(std::string text);
  Buffer& add(const std::vector<char>& contents, Buffer::Kind kind);
  void compare(double tolerance);

  CudaDevice& device_;
  Runs runs_;
  std::unique_ptr<MemorySource> source_;
  ThreadPool pool_{1};
  Rng rng_{20};
  std::string text_;
  std::vector<std::unique_ptr<Buffer>> buffers_, scratch_;
};

/// A row of the table: a kernel, and its cases.
struct ParityRow {
  std::string kernel;
  std::function<void(Parity&)> cases;
};
inline void PrintTo(const ParityRow& row, std::ostream* out) {
  *out << row.kernel;
}

}  // namespace nmt::test
