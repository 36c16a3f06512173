#pragma once

#include "config/enum_names.h"

namespace nmt {

/// The layer between the top recurrent layer of a language model and its softmax.
enum class OutputLayer { linear, tanh, none };
template <>
struct EnumNames<OutputLayer> {
  static constexpr auto names = std::to_array<std::string_view>({"linear", "tanh", "none"});
};

/// What a language model scores a line after: all lines before it, or the start of a sentence.
enum class LineContext { text, line };
template <>
struct EnumNames<LineContext> {
  static constexpr auto names = std::to_array<std::string_view>({"text", "line"});
};

/// What a classifier labels: a text, or two that are read as one.
enum class LabeledUnit { text, pair };
template <>
struct EnumNames<LabeledUnit> {
  static constexpr auto names = std::to_array<std::string_view>({"text", "pair"});
};

/// The networks of a tagger (Su & Kuo, ELSTM 2018, section 4.2).
enum class TaggingNetwork { basic, bidirectional, dependent };
template <>
struct EnumNames<TaggingNetwork> {
  static constexpr auto names =
      std::to_array<std::string_view>({"basic", "bidirectional", "dependent"});
};

}  // namespace nmt
