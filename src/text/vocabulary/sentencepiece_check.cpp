#include "text/vocabulary/sentencepiece_check.h"

#include "text/vocabulary/charsmap.h"
#include "text/vocabulary/protobuf.h"
#include "text/vocabulary/sentencepiece_fields.h"

#include <fmt/format.h>

namespace nmt {

namespace {

constexpr std::string_view kIncomplete = "not a complete SentencePiece model";

std::string piece_defect(std::string_view message, std::size_t index) {
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    if (field->number != sentencepiece_fields::text) continue;
    if (field->bytes.size() > max_piece_bytes)
      return fmt::format("piece {} has {} bytes; at most {} are allowed", index,
                         field->bytes.size(), max_piece_bytes);
    // libsentencepiece 0.1.97 ends the process over one.
    if (field->bytes.starts_with('\0'))
      return fmt::format("piece {} begins with a NUL byte", index);
  }
  return std::string(fields.whole() ? "" : kIncomplete);
}

std::string normalizer_defect(std::string_view message) {
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    if (field->number == sentencepiece_fields::charsmap && !charsmap_is_sound(field->bytes))
      return "its normalization table is corrupt";
  }
  return std::string(fields.whole() ? "" : kIncomplete);
}

}  // namespace

std::string sentencepiece_defect(std::string_view model) {
  if (model.size() > max_vocabulary_bytes)
    return fmt::format("larger than {} MiB", max_vocabulary_bytes >> 20);
  std::size_t pieces = 0, self_test = 0;
  ProtobufFields fields(model);
  while (const auto field = fields.next()) {
    std::string defect;
    switch (field->number) {
      case sentencepiece_fields::piece: defect = piece_defect(field->bytes, pieces++); break;
      case sentencepiece_fields::normalizer:
      case sentencepiece_fields::denormalizer: defect = normalizer_defect(field->bytes); break;
      case sentencepiece_fields::self_test: self_test += field->bytes.size(); break;
    }
    if (!defect.empty()) return defect;
    if (pieces > max_pieces) return fmt::format("more than {} pieces", max_pieces);
    if (self_test > max_self_test_bytes)
      return fmt::format("more than {} KiB of self-test samples", max_self_test_bytes >> 10);
  }
  return std::string(fields.whole() ? "" : kIncomplete);
}

}  // namespace nmt
