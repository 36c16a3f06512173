#include "text/vocabulary/sentencepiece_model.h"

#include "text/vocabulary/protobuf.h"
#include "text/vocabulary/sentencepiece_fields.h"

#include <bit>
#include <cstdint>

namespace nmt {
namespace {

namespace proto = sentencepiece_fields;

VocabularyPiece parse_piece(std::string_view message) {
  VocabularyPiece piece;
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    switch (field->number) {
      case proto::text: piece.text = field->bytes; break;
      case proto::score:
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
        break;
      case proto::type: piece.is_normal = field->value == proto::normal; break;
    }
  }
  return piece;
}

}  // namespace

VocabularyType vocabulary_type(std::string_view model) {
  ProtobufFields fields(model);
  while (const auto field = fields.next()) {
    if (field->number != proto::trainer) continue;
    ProtobufFields settings(field->bytes);
    while (const auto setting = settings.next())
      if (setting->number == proto::model_type) return static_cast<VocabularyType>(setting->value);
  }
  return VocabularyType::unigram;
}

std::vector<VocabularyPiece> vocabulary_pieces(std::string_view model) {
  std::vector<VocabularyPiece> pieces;
  ProtobufFields fields(model);
  while (const auto field = fields.next())
    if (field->number == proto::piece) pieces.push_back(parse_piece(field->bytes));
  return pieces;
}

}  // namespace nmt
