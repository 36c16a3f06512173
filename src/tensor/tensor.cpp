#include "tensor/tensor.h"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

namespace nmt {

std::int64_t bytes_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::bf16: return 2;
    case Dtype::i8: return 1;
    case Dtype::f64: return 8;
  }
  NMT_FAIL("unknown dtype {}", static_cast<int>(dtype));
}

const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::bf16: return "bf16";
    case Dtype::i8: return "i8";
    case Dtype::i32: return "i32";
    case Dtype::f64: return "f64";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  NMT_CHECK(dims.size() <= dims_.size(), "a shape has at most {} axes, not {}", dims_.size(),
            dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  for (const std::int64_t dim : dims) NMT_CHECK(dim >= 0, "shape {} has a negative axis", text());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= dims_[axis];
  return product;
}

Shape Shape::with_last(std::int64_t width) const {
  Shape copy = *this;
  copy.dims_[rank_ - 1] = width;
  return copy;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ","));
}

Tensor::Tensor(Arena& arena, Shape shape, Dtype dtype, Device device)
    : shape_(shape),
      dtype_(dtype),
      device_(device),
      block_(arena.allocate(static_cast<std::size_t>(shape.elements() * bytes_of(dtype)))) {}

Tensor::Tensor(const Tensor& other)
    : shape_(other.shape_),
      dtype_(other.dtype_),
      device_(other.device_),
      block_(other.block_),
      offset_(other.offset_) {
  if (block_) ++block_->references;
}

Tensor::~Tensor() {
  if (!block_ || --block_->references > 0) return;
  if (block_->arena)
    block_->arena->release(block_);
  else
    delete block_;  // borrowed
}

void Tensor::swap(Tensor& other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(dtype_, other.dtype_);
  std::swap(device_, other.device_);
  std::swap(block_, other.block_);
  std::swap(offset_, other.offset_);
}

Tensor Tensor::reshape(Shape shape) const {
  NMT_CHECK(shape.elements() == elements(), "a tensor {} cannot be reshaped to {}", shape_.text(),
            shape.text());
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t count) const {
  NMT_CHECK(shape_.rank() > 0 && begin >= 0 && count >= 0 && begin + count <= shape_[0],
            "rows {} to {} of {}", begin, begin + count, shape_.text());
  const std::int64_t row = shape_[0] == 0 ? 0 : elements() / shape_[0];
  Tensor view = *this;
  view.offset_ += begin * row * bytes_of(dtype_);
  switch (shape_.rank()) {
    case 1: view.shape_ = {count}; break;
    case 2: view.shape_ = {count, shape_[1]}; break;
    case 3: view.shape_ = {count, shape_[1], shape_[2]}; break;
    default: view.shape_ = {count, shape_[1], shape_[2], shape_[3]}; break;
  }
  return view;
}

Tensor Tensor::borrow() const {
  Tensor view;
  if (!block_) return view;
  view.shape_ = shape_;
  view.dtype_ = dtype_;
  view.device_ = device_;
  view.offset_ = offset_;
  view.block_ = new Block{.data = block_->data, .size = block_->size, .references = 1};
  return view;
}

}  // namespace nmt
