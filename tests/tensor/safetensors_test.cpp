#include "tensor/safetensors.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/hash/checksum.h"

#include <bit>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt::safetensors {
namespace {

// A file from its header's text and data, by hand.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

std::string error_of(const std::string& bytes) {
  try {
    // A copy of exactly this size, so that AddressSanitizer sees a read beyond its end.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const Contents contents({exact.data(), exact.size()}, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("f: ")) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What save_file() of the Python library safetensors 0.8.0 writes for {"a": [[1, 2], [3, 4]] as
// float32, "b": [-1] as int8}.
const std::string reference_header =
    R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"I8","shape":[1],"data_offsets":[16,17]}} )";
const std::string reference_data("\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\xff", 17);

TEST(Safetensors, ReadsTheFormat) {
  const float values[4] = {1, 2, 3, 4};
  const std::string bytes = file_of(reference_header, reference_data);
  EXPECT_EQ(bytes[0], 'p');  // the length of that header
  const Contents contents(bytes, "f");
  ASSERT_EQ(contents.tensors().size(), 2u);
  const View* a = contents.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, FileDtype::f32);
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(std::memcmp(a->data, values, 16), 0);
  EXPECT_EQ(static_cast<signed char>(*contents.find("b")->data), -1);
  EXPECT_EQ(contents.find("c"), nullptr);
}

TEST(Safetensors, WritesTheFormat) {
  const float values[4] = {1, 2, 3, 4};
  const std::int8_t minus = -1;
  const std::vector<View> views{{"a", FileDtype::f32, {2, 2}, values},
                                {"b", FileDtype::i8, {1}, &minus}};
  const std::string head = header(views);
  std::uint64_t length = 0;
  std::memcpy(&length, head.data(), 8);
  EXPECT_EQ(length + 8, head.size());
  EXPECT_EQ(head.size() % 64, 0u);
  // The order of keys is free: compare as sets of entries.
  EXPECT_TRUE(has(head, R"("a":{"data_offsets":[0,16],"dtype":"F32","shape":[2,2]})")) << head;
  EXPECT_TRUE(has(head, R"("b":{"data_offsets":[16,17],"dtype":"I8","shape":[1]})")) << head;
}

TEST(Safetensors, FilesReadBack) {
  const std::string path =
      testing::TempDir() + "nmt_" + std::to_string(::getpid()) + ".safetensors";
  const std::vector<double> f64{0.1, -2e300};
  const std::vector<std::int64_t> i64{-5, 1LL << 60, 7};
  const std::vector<std::uint8_t> u8{1, 2, 255};
  const std::vector<std::uint16_t> bf16{0x3f80, 0xc000};
  const std::int32_t one = 42;
  const std::vector<View> views{
      {"d", FileDtype::f64, {2}, f64.data()},    {"empty", FileDtype::f32, {3, 0}, nullptr},
      {"i", FileDtype::i64, {3, 1}, i64.data()}, {"\xc3\xa4 \"q\"", FileDtype::u8, {3}, u8.data()},
      {"h", FileDtype::bf16, {2}, bf16.data()},  {"scalar", FileDtype::i32, {}, &one}};
  const Written written = write(path, views, {{"format", "nmt"}, {"z", ""}});
  const std::string bytes = read_file(path);
  EXPECT_EQ(written.bytes, bytes.size());
  EXPECT_EQ(written.crc32, crc32(bytes));
  const File file(path);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "nmt"}, {"z", ""}}));
  ASSERT_EQ(file.tensors().size(), views.size());
  for (const View& view : views) {
    const View* back = file.find(view.name);
    ASSERT_NE(back, nullptr) << view.name;
    EXPECT_EQ(back->dtype, view.dtype);
    EXPECT_EQ(back->shape, view.shape);
    EXPECT_TRUE(view.bytes() == 0 || std::memcmp(back->data, view.data, view.bytes()) == 0)
        << view.name;
    file.forget(*back);
  }
  EXPECT_NO_THROW(file.require("h", FileDtype::bf16, {2}));
  EXPECT_THROW(file.require("h", FileDtype::f32, {2}), Error);
  EXPECT_THROW(file.require("h", FileDtype::bf16, {3}), Error);
  EXPECT_THROW(file.require("none", FileDtype::bf16, {3}), Error);
  EXPECT_THROW(header(std::vector<View>{views[0], views[0]}), Error);
  std::filesystem::remove(path);
}

TEST(Safetensors, EveryCutIsSeen) {
  const std::string bytes = file_of(reference_header, std::string(17, 'x'));
  EXPECT_EQ(error_of(bytes), "accepted");
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_NE(error_of(bytes.substr(0, n)), "accepted") << n;
  EXPECT_TRUE(has(error_of(bytes.substr(0, bytes.size() - 1)),
                  "tensor \"b\": ends at byte 17 of 16: the file is truncated"));
  EXPECT_TRUE(has(error_of(bytes + "x"), "1 bytes after the last tensor"));
}

TEST(Safetensors, NothingIsTrusted) {
  const auto one = [](const std::string& entry, std::size_t bytes = 16) {
    return error_of(file_of("{\"t\":" + entry + "}", std::string(bytes, 'x')));
  };
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"), "accepted");
  EXPECT_TRUE(has(one(R"({"dtype":"F31","shape":[4],"data_offsets":[0,16]})"), "unknown dtype"));
  EXPECT_TRUE(has(one(R"({"dtype":4,"shape":[4],"data_offsets":[0,16]})"), "unknown dtype"));
  EXPECT_TRUE(
      has(one(R"({"dtype":"F32","shape":[5],"data_offsets":[0,16]})"), "do not hold the 20 bytes"));
  EXPECT_TRUE(
      has(one(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})"), "not a whole number"));
  EXPECT_TRUE(
      has(one(R"({"dtype":"F32","shape":[4.0],"data_offsets":[0,16]})"), "not a whole number"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":4,"data_offsets":[0,16]})"), "is not a list"));
  // 2^62 x 4 elements of 4 bytes are 2^66 bytes: 0 modulo 2^64.
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})", 0),
                  "more elements than 64 bits"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16]})"),
                  "not a whole number"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})"), "do not hold"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4],"data_offsets":[18446744073709551600,0]})"),
                  "do not hold"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0]})"), "two whole numbers"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4]})"), "the entry is not"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1})"),
                  "the entry is not"));
  EXPECT_TRUE(has(one("[]"), "the entry is not"));
  EXPECT_TRUE(has(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]})"), "leaves a gap"));
  const std::string t = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
                    u = R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})";
  EXPECT_TRUE(has(error_of(file_of("{\"t\":" + t + ",\"u\":" + u + "}", std::string(12, 'x'))),
                  "overlaps"));
  EXPECT_TRUE(has(error_of(file_of("{\"t\":" + t + ",\"t\":" + t + "}", std::string(8, 'x'))),
                  "duplicate tensor "));
  EXPECT_TRUE(
      has(error_of(file_of(R"({"__metadata__":{"a":1}})")), "is not a map from text to text"));
  EXPECT_TRUE(has(error_of(file_of("[1]")), "does not begin with {"));
  EXPECT_TRUE(has(error_of(file_of("{\"a\":")), "not JSON"));
  EXPECT_TRUE(has(error_of(file_of("{\"a\":\"\xff\"}")), "not JSON"));
  EXPECT_NE(
      error_of(file_of("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}")),
      "accepted");
  EXPECT_TRUE(has(error_of(std::string(8, '\xff') + "{}"), "at most 100000000"));
  EXPECT_TRUE(has(error_of("PK\x03\x04 a zip file, as numpy writes it"), "not a safetensors file"));
  EXPECT_EQ(error_of(file_of("{}")), "accepted");
}

// Check value of the catalog of CRC algorithms (CRC-32/ISO-HDLC); the others by Python's
// zlib.crc32.
TEST(Checksum, KnownValues) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32(std::string(32, '\0')), 0x190A55ADu);
  const std::string text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(crc32(text), 0x414FA339u);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(
        crc32(std::string_view(text).substr(cut), crc32(std::string_view(text).substr(0, cut))),
        0x414FA339u);
}

// Long texts are folded, others go through tables: at every length and alignment as bit by bit.
TEST(Checksum, AsBitByBit) {
  std::string text(1000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i * 31 + i / 7);
  for (std::size_t first = 0; first < 17; ++first) {
    std::uint32_t rest = ~0xABCDu;
    for (std::size_t length = 0; first + length < text.size(); ++length) {
      ASSERT_EQ(crc32(std::string_view(text).substr(first, length), 0xABCD), ~rest)
          << first << " " << length;
      rest ^= static_cast<unsigned char>(text[first + length]);
      for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320u : 0u);
    }
  }
}

}  // namespace
}  // namespace nmt::safetensors
