#pragma once

#include "config/enum_names.h"

namespace nmt {

/// Update rules: train/optimization/optimizer.h.
enum class UpdateRule { adam, adamw, adadelta, adagrad, sgd };
template <>
struct EnumNames<UpdateRule> {
  static constexpr auto names =
      std::to_array<std::string_view>({"adam", "adamw", "adadelta", "adagrad", "sgd"});
};

/// The learning rate after the warm-up: train/optimization/schedule.h.
enum class RateSchedule { inv_sqrt, rnmt, constant };
template <>
struct EnumNames<RateSchedule> {
  static constexpr auto names = std::to_array<std::string_view>({"inv-sqrt", "rnmt+", "constant"});
};

/// When the learning rate decays.
enum class DecayStrategy { epoch, stalled, epoch_stalled };
template <>
struct EnumNames<DecayStrategy> {
  static constexpr auto names =
      std::to_array<std::string_view>({"epoch", "stalled", "epoch+stalled"});
};

/// Divisor of the summed cost of an update: target tokens or sentences.
enum class CostType { ce_mean_words, ce_mean };
template <>
struct EnumNames<CostType> {
  static constexpr auto names = std::to_array<std::string_view>({"ce-mean-words", "ce-mean"});
};

/// Validation metrics.
enum class ValidMetric { bleu, chrf, cross_entropy, perplexity };
template <>
struct EnumNames<ValidMetric> {
  static constexpr auto names =
      std::to_array<std::string_view>({"bleu", "chrf", "cross-entropy", "perplexity"});
};

/// What a learned vocabulary consists of: SentencePiece subwords, or the words between spaces.
enum class VocabularyKind { sentencepiece, words };
template <>
struct EnumNames<VocabularyKind> {
  static constexpr auto names = std::to_array<std::string_view>({"sentencepiece", "words"});
};

/// What max-length counts: pieces of the vocabulary, or words between spaces.
enum class LengthUnit { pieces, words };
template <>
struct EnumNames<LengthUnit> {
  static constexpr auto names = std::to_array<std::string_view>({"pieces", "words"});
};

}  // namespace nmt
