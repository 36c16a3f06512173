#pragma once

#include "core/error.h"
#include "tensor/arena.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace nmt {

enum class Dtype : std::uint8_t { f32, bf16, i8, i32, f64 };
std::int64_t bytes_of(Dtype dtype);
const char* name_of(Dtype dtype);

enum class DeviceKind : std::uint8_t { cpu, cuda };
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

/// Up to four dimensions, row-major. Letters used everywhere: B batch, S source steps, T target
/// steps, E embedding, H hidden, V vocabulary, A attention space, M memory width, K groups.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[axis < 0 ? axis + rank_ : axis]; }
  std::int64_t elements() const;
  /// Elements of all axes but the last: the rows of the matrix that products see.
  std::int64_t rows() const { return rank_ == 0 ? 1 : elements() / (*this)[-1]; }
  /// The same shape with another last axis.
  Shape with_last(std::int64_t width) const;
  bool operator==(const Shape& other) const;
  std::string text() const;  ///< "[3,4]"

 private:
  std::array<std::int64_t, 4> dims_{};
  int rank_ = 0;
};

/// Shape + dtype + device + shared storage from an arena. Copies share the storage.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Arena& arena, Shape shape, Dtype dtype = Dtype::f32, Device device = {});
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor other) noexcept {
    swap(other);
    return *this;
  }
  ~Tensor();

  explicit operator bool() const { return block_ != nullptr; }
  /// Whether no other tensor shares the storage.
  bool unique() const { return block_ && block_->references == 1; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  bool in_host_memory() const { return device_.kind == DeviceKind::cpu; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t rows() const { return shape_.rows(); }
  std::int64_t width() const { return shape_[-1]; }

  /// The elements. Error: T is not the type of the dtype.
  template <class T>
  T* data() const;
  float* f32() const { return data<float>(); }

  /// The same storage under another shape with as many elements.
  Tensor reshape(Shape shape) const;
  /// Rows [begin, begin+count) of the first axis, sharing storage.
  Tensor slice(std::int64_t begin, std::int64_t count) const;
  /// The same elements for another thread, with a reference count of its own. It does not keep the
  /// storage alive, which must outlive it. An empty tensor gives an empty one.
  Tensor borrow() const;

 private:
  void swap(Tensor& other) noexcept;
  Shape shape_;
  Dtype dtype_ = Dtype::f32;
  Device device_;
  Block* block_ = nullptr;
  std::int64_t offset_ = 0;  // bytes
};

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int8_t> {
  static constexpr Dtype value = Dtype::i8;
};
template <>
struct DtypeOf<std::uint16_t> {
  static constexpr Dtype value = Dtype::bf16;
};

template <class T>
T* Tensor::data() const {
  NMT_CHECK(block_, "an empty tensor has no data");
  NMT_CHECK(dtype_ == DtypeOf<T>::value, "tensor {} holds {}", shape_.text(), name_of(dtype_));
  return reinterpret_cast<T*>(block_->data + offset_);
}

}  // namespace nmt
