#include "core/error.h"
#include "core/nlohmann.h"
#include "tensor/safetensors.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace nmt::safetensors {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_header = 100'000'000;  // bytes, the limit of the format's own library
constexpr std::size_t length_bytes = 8;
constexpr const char* metadata_name = "__metadata__";

struct Kind {
  FileDtype dtype;
  const char* name;
  std::size_t bytes;
};
constexpr Kind kinds[] = {{FileDtype::f64, "F64", 8},   {FileDtype::f32, "F32", 4},
                          {FileDtype::bf16, "BF16", 2}, {FileDtype::i64, "I64", 8},
                          {FileDtype::i32, "I32", 4},   {FileDtype::i8, "I8", 1},
                          {FileDtype::u8, "U8", 1}};

const Kind& kind_of(FileDtype dtype) {
  for (const Kind& kind : kinds)
    if (kind.dtype == dtype) return kind;
  NMT_FAIL("no safetensors dtype {}", static_cast<int>(dtype));
}

// A name from an untrusted file, escaped and shortened for a message.
std::string shown(std::string_view text) {
  return json(text.substr(0, 80)).dump(-1, ' ', true, json::error_handler_t::replace);
}

// Limits the depth of the document: a valid header has three levels, plus the array.
json parse_header(std::string_view text, const std::string& name) {
  bool too_deep = false;
  std::map<std::string, int> names;
  std::string twice;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep = too_deep || depth > 4;
    // The JSON library keeps one of two values under the same key; here the second is an error.
    if (depth == 1 && event == json::parse_event_t::key && ++names[parsed.get<std::string>()] > 1)
      twice = parsed.get<std::string>();
    return !too_deep;
  };
  json header;
  try {
    header = json::parse(text, watch);
  } catch (const json::exception& error) {
    fail(ExitStatus::data, "{}: not a safetensors file: the header is not JSON", name);
  }
  if (too_deep)
    fail(ExitStatus::data, "{}: not a safetensors file: the header is nested too deeply", name);
  if (!header.is_object())
    fail(ExitStatus::data, "{}: not a safetensors file: the header is not a JSON object", name);
  if (!twice.empty()) fail(ExitStatus::data, "{}: duplicate tensor {}", name, shown(twice));
  return header;
}

// A whole number from 0 to 2^64 - 1; the format does not allow JSON's 3.0 and 1e9.
std::optional<std::uint64_t> whole(const json& value) {
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

Metadata read_metadata(const json& value, const std::string& name) {
  Metadata metadata;
  const auto wrong = [&] {
    fail(ExitStatus::data, "{}: {} is not a map from text to text", name, metadata_name);
  };
  if (!value.is_object()) wrong();
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) wrong();
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

struct Placed {
  View view;
  std::uint64_t begin = 0, end = 0;
};

Placed read_tensor(const std::string& tensor, const json& value, const std::string& file) {
  const auto wrong = [&](const std::string& what) {
    fail(ExitStatus::data, "{}: tensor {}: {}", file, shown(tensor), what);
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    wrong("the entry is not dtype, shape and data_offsets");
  Placed placed;
  placed.view.name = tensor;
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const auto kind = std::find_if(std::begin(kinds), std::end(kinds),
                                 [&](const Kind& k) { return dtype == k.name; });
  if (kind == std::end(kinds))
    wrong(fmt::format("unknown dtype {}",
                      shown(dtype.dump(-1, ' ', true, json::error_handler_t::replace))));
  placed.view.dtype = kind->dtype;
  if (!shape.is_array()) wrong("the shape is not a list");
  std::uint64_t bytes = kind->bytes;
  for (const json& dim : shape) {
    const auto n = whole(dim);
    if (!n || *n > static_cast<std::uint64_t>(INT64_MAX))
      wrong("the shape has an element that is not a whole number of 0 or more");
    if (__builtin_mul_overflow(bytes, *n, &bytes) || bytes > static_cast<std::uint64_t>(INT64_MAX))
      wrong("the shape has more elements than 64 bits can count");
    placed.view.shape.push_back(static_cast<std::int64_t>(*n));
  }
  if (!offsets.is_array() || offsets.size() != 2 || !whole(offsets[0]) || !whole(offsets[1]))
    wrong("data_offsets are not two whole numbers");
  placed.begin = *whole(offsets[0]);
  placed.end = *whole(offsets[1]);
  if (placed.begin > placed.end || placed.end - placed.begin != bytes)
    wrong(fmt::format("data_offsets [{},{}] do not hold the {} bytes of the shape", placed.begin,
                      placed.end, bytes));
  return placed;
}

}  // namespace

std::size_t bytes_of(FileDtype dtype) {
  return kind_of(dtype).bytes;
}
const char* name_of(FileDtype dtype) {
  return kind_of(dtype).name;
}

FileDtype dtype_of(nmt::Dtype dtype) {
  switch (dtype) {
    case nmt::Dtype::f32: return FileDtype::f32;
    case nmt::Dtype::bf16: return FileDtype::bf16;
    case nmt::Dtype::i8: return FileDtype::i8;
    case nmt::Dtype::i32: return FileDtype::i32;
    case nmt::Dtype::f64: return FileDtype::f64;
  }
  NMT_FAIL("no dtype {}", static_cast<int>(dtype));
}

std::string header(std::span<const View> tensors, const Metadata& metadata) {
  json object = json::object();
  if (!metadata.empty()) object[metadata_name] = metadata;
  std::uint64_t at = 0;
  for (const View& tensor : tensors) {
    NMT_CHECK(tensor.name != metadata_name && !object.contains(tensor.name),
              "two tensors are named {}", tensor.name);
    object[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text;
  try {
    text = object.dump();
  } catch (const json::exception&) {
    NMT_FAIL("a tensor's name or the metadata is not UTF-8");
  }
  // The format allows spaces after the header.
  text.resize((length_bytes + text.size() + 63) / 64 * 64 - length_bytes, ' ');
  NMT_CHECK(text.size() <= max_header, "a safetensors header of {} bytes; at most {}", text.size(),
            max_header);
  std::string out(length_bytes, '\0');
  for (std::size_t i = 0; i < length_bytes; ++i)
    out[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return out + text;
}

Contents::Contents(std::string_view bytes, const std::string& name) {
  if (bytes.size() < length_bytes)
    fail(ExitStatus::data, "{}: not a safetensors file, or truncated: it has {} bytes", name,
         bytes.size());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (length > max_header)
    fail(ExitStatus::data, "{}: not a safetensors file: a header of {} bytes; at most {}", name,
         length, max_header);
  if (length > bytes.size() - length_bytes)
    fail(ExitStatus::data,
         "{}: truncated, or not a safetensors file: a header of {} bytes in a file of {}", name,
         length, bytes.size());
  const std::string_view text = bytes.substr(length_bytes, length),
                         data = bytes.substr(length_bytes + length);
  if (text.empty() || text.front() != '{')
    fail(ExitStatus::data, "{}: not a safetensors file: the header does not begin with {{", name);

  std::vector<Placed> placed;
  const json entries = parse_header(text, name);
  for (const auto& [key, value] : entries.items()) {
    if (key == metadata_name) {
      metadata_ = read_metadata(value, name);
    } else {
      placed.push_back(read_tensor(key, value, name));
    }
  }
  // Empty tensors first among those that begin at the same byte.
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (Placed& tensor : placed) {
    const auto wrong = [&](const std::string& what) {
      fail(ExitStatus::data, "{}: tensor {}: {}", name, shown(tensor.view.name), what);
    };
    if (tensor.begin != at)
      wrong(fmt::format("begins at byte {} and {} the one before, which ends at {}", tensor.begin,
                        tensor.begin < at ? "overlaps" : "leaves a gap after", at));
    if (tensor.end > data.size())
      wrong(fmt::format("ends at byte {} of {}: the file is truncated", tensor.end, data.size()));
    tensor.view.data = reinterpret_cast<const std::byte*>(data.data()) + tensor.begin;
    at = tensor.end;
    by_name_[tensor.view.name] = tensors_.size();
    tensors_.push_back(std::move(tensor.view));
  }
  if (at != data.size())
    fail(ExitStatus::data, "{}: {} bytes after the last tensor", name, data.size() - at);
}

const View* Contents::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

}  // namespace nmt::safetensors
