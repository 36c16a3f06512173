#pragma once

#include "config/enum_names.h"

namespace nmt::app {

/// The steps of nmt-distill, in order.
enum class DistillStep { none, translate, select, filter, align, train, shortlist, convert, check };

/// Which hypothesis of the teacher's n-best list becomes the student's target.
enum class Selection {
  score,  ///< the best by the teacher's score
  bleu,   ///< the one closest to the reference by sentence BLEU
  chrf    ///< the one closest to the reference by sentence chrF
};

}  // namespace nmt::app

namespace nmt {

template <>
struct EnumNames<app::DistillStep> {
  static constexpr auto names = std::to_array<std::string_view>(
      {"", "translate", "select", "filter", "align", "train", "shortlist", "convert", "check"});
};
template <>
struct EnumNames<app::Selection> {
  static constexpr auto names = std::to_array<std::string_view>({"score", "bleu", "chrf"});
};

}  // namespace nmt
