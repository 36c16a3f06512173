#pragma once

#include <cstdint>

/// Field numbers and values of sentencepiece_model.proto.
namespace nmt::sentencepiece_fields {

constexpr std::uint64_t piece = 1, trainer = 2, normalizer = 3, self_test = 4,
                        denormalizer = 5;                      // of the model
constexpr std::uint64_t text = 1, score = 2, type = 3;         // of a piece
constexpr std::uint64_t model_type = 3;                        // of the trainer
constexpr std::uint64_t name = 1, charsmap = 2;                // of a normalizer
constexpr std::uint64_t normal = 1, unknown = 2, control = 3;  // types of a piece

}  // namespace nmt::sentencepiece_fields
