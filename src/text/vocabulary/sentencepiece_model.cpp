#include "text/vocabulary/sentencepiece_model.h"

#include "text/vocabulary/protobuf.h"

#include <bit>
#include <cstdint>

namespace nmt {
namespace {

// Field numbers of sentencepiece_model.proto.
namespace model_field {
constexpr std::uint64_t piece = 1, trainer = 2;
}
namespace piece_field {
constexpr std::uint64_t text = 1, score = 2, type = 3;
}
constexpr std::uint64_t kModelType = 3, kNormal = 1;

VocabularyPiece parse_piece(std::string_view message) {
  VocabularyPiece piece;
  ProtobufFields fields(message);
  while (const auto field = fields.next()) {
    switch (field->number) {
      case piece_field::text: piece.text = field->bytes; break;
      case piece_field::score:
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
        break;
      case piece_field::type: piece.is_normal = field->value == kNormal; break;
    }
  }
  return piece;
}

}  // namespace

VocabularyType vocabulary_type(std::string_view model) {
  ProtobufFields fields(model);
  while (const auto field = fields.next()) {
    if (field->number != model_field::trainer) continue;
    ProtobufFields settings(field->bytes);
    while (const auto setting = settings.next())
      if (setting->number == kModelType) return static_cast<VocabularyType>(setting->value);
  }
  return VocabularyType::unigram;
}

std::vector<VocabularyPiece> vocabulary_pieces(std::string_view model) {
  std::vector<VocabularyPiece> pieces;
  ProtobufFields fields(model);
  while (const auto field = fields.next())
    if (field->number == model_field::piece) pieces.push_back(parse_piece(field->bytes));
  return pieces;
}

}  // namespace nmt
