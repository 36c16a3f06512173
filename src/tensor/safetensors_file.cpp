#include "core/error.h"
#include "core/files/file.h"
#include "core/hash/checksum.h"
#include "tensor/safetensors.h"

#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nmt::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written in the byte order of memory");

std::vector<std::int64_t> dims_of(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

}  // namespace

View::View(std::string name_, FileDtype dtype_, std::vector<std::int64_t> shape_, const void* data_)
    : name(std::move(name_)),
      dtype(dtype_),
      shape(std::move(shape_)),
      data(static_cast<const std::byte*>(data_)) {}

View::View(std::string name_, const Tensor& tensor)
    : View(std::move(name_), dtype_of(tensor.dtype()), dims_of(tensor.shape()), nullptr) {
  NMT_CHECK(tensor.in_host_memory(), "tensor {} is not in host memory", name);
  switch (tensor.dtype()) {
    case nmt::Dtype::f32: data = reinterpret_cast<const std::byte*>(tensor.data<float>()); break;
    case nmt::Dtype::bf16:
      data = reinterpret_cast<const std::byte*>(tensor.data<std::uint16_t>());
      break;
    case nmt::Dtype::i8:
      data = reinterpret_cast<const std::byte*>(tensor.data<std::int8_t>());
      break;
    case nmt::Dtype::f64: data = reinterpret_cast<const std::byte*>(tensor.data<double>()); break;
    case nmt::Dtype::i32:
      data = reinterpret_cast<const std::byte*>(tensor.data<std::int32_t>());
      break;
  }
}

std::size_t View::bytes() const {
  std::size_t n = bytes_of(dtype);
  for (const std::int64_t dim : shape) n *= static_cast<std::size_t>(dim);
  return n;
}

std::string View::shape_text() const {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

Written write(const std::string& path, std::span<const View> tensors, const Metadata& metadata) {
  const std::string head = header(tensors, metadata);
  std::uint64_t total = head.size();
  for (const View& tensor : tensors) total += tensor.bytes();
  AtomicFile file(path, static_cast<std::int64_t>(total));
  Written written{total, crc32(head)};
  file.write(head);
  for (const View& tensor : tensors) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data), tensor.bytes());
    written.crc32 = crc32(bytes, written.crc32);
    file.write(bytes);
  }
  file.commit();
  return written;
}

const View& File::require(const std::string& name, FileDtype dtype, const Shape& shape) const {
  const View* found = find(name);
  if (!found) fail(ExitStatus::data, "{}: tensor {}: is missing", path(), name);
  if (found->dtype != dtype || found->shape != dims_of(shape)) {
    fail(ExitStatus::data, "{}: tensor {}: is {} {}, expected {} {}", path(), name,
         name_of(found->dtype), found->shape_text(), name_of(dtype), shape.text());
  }
  return *found;
}

void File::forget(const View& tensor) const {
  const auto* start = reinterpret_cast<const std::byte*>(file_.bytes().data());
  file_.release(static_cast<std::size_t>(tensor.data - start), tensor.bytes());
}

}  // namespace nmt::safetensors
