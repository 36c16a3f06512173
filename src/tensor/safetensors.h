#pragma once

#include "core/files/mapped_file.h"
#include "tensor/tensor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nmt::safetensors {

// The safetensors format (https://github.com/huggingface/safetensors, README "Format"): eight
// bytes, little-endian, with the length of a JSON header; the header, {"name": {"dtype", "shape",
// "data_offsets": [begin, end]}, ..., "__metadata__": {...}}; then the tensors' bytes,
// little-endian and row-major, without holes or overlaps.

enum class FileDtype : std::uint8_t { f64, f32, bf16, i64, i32, i8, u8 };
std::size_t bytes_of(FileDtype dtype);
const char* name_of(FileDtype dtype);  ///< as in the file: "F32"
FileDtype dtype_of(nmt::Dtype dtype);

/// A tensor in memory that the view does not own: to be written, or in a file that was read.
struct View {
  std::string name;
  FileDtype dtype = FileDtype::f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;

  View() = default;
  View(std::string name_, FileDtype dtype_, std::vector<std::int64_t> shape_, const void* data_);
  /// A tensor on the CPU; it must outlive the view.
  View(std::string name_, const Tensor& tensor);
  std::size_t bytes() const;       ///< of a valid shape
  std::string shape_text() const;  ///< "[3,4]"
};

using Metadata = std::map<std::string, std::string>;

/// The bytes before the tensors: length and header, padded so that the tensors start at a multiple
/// of 64. Tensors are stored in the given order. Error (failed): a duplicate name, or one that is
/// "__metadata__" or not UTF-8.
std::string header(std::span<const View> tensors, const Metadata& metadata = {});
/// Size and checksum of a written file, for a manifest.
struct Written {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};
/// Writes a file atomically. Errors (failed): as header(), AtomicFile.
Written write(const std::string& path, std::span<const View> tensors,
              const Metadata& metadata = {});

/// The contents of a file in memory, which must outlive them. Nothing in the file is trusted: every
/// bound is checked before a byte is read. Errors (data), one line with `name`, the tensor and the
/// reason: a truncated file or one of another format, a header of more than 100 MB or that is not
/// JSON, an unknown dtype, shapes that overflow or do not fit their bytes, tensors that overlap or
/// leave gaps.
class Contents {
 public:
  Contents(std::string_view bytes, const std::string& name);
  const std::vector<View>& tensors() const { return tensors_; }  ///< in the order of their bytes
  const Metadata& metadata() const { return metadata_; }
  /// Null when no tensor has this name.
  const View* find(std::string_view name) const;

 private:
  std::vector<View> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  Metadata metadata_;
};

/// A memory-mapped safetensors file.
class File {
 public:
  /// Errors (usage): missing or not readable; (data): as Contents.
  explicit File(const std::string& path) : File(MappedFile(path)) {}
  explicit File(MappedFile file) : file_(std::move(file)), contents_(file_.bytes(), path()) {}
  const std::string& path() const { return file_.path(); }
  const std::vector<View>& tensors() const { return contents_.tensors(); }
  const Metadata& metadata() const { return contents_.metadata(); }
  const View* find(std::string_view name) const { return contents_.find(name); }
  /// The tensor of this name, dtype and shape. Errors (data): it is missing or differs; names both.
  const View& require(const std::string& name, FileDtype dtype, const Shape& shape) const;
  /// Releases the memory of the tensor's pages; they may be read again.
  void forget(const View& tensor) const;

 private:
  MappedFile file_;
  Contents contents_;
};

}  // namespace nmt::safetensors
