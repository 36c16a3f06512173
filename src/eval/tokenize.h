#pragma once

#include "config/enum_names.h"
#include "nmt/metrics.h"

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

template <>
struct EnumNames<BleuTokenizer> {
  static constexpr std::array<std::string_view, 4> names{"13a", "intl", "none", "multi-bleu"};
};

/// The tokens of a line of valid UTF-8. White space is Unicode white space as in Python's
/// str.split().
std::vector<std::string> tokenize(BleuTokenizer tokenizer, std::string_view line);
/// Python's str.split() without arguments.
std::vector<std::string> split_words(std::string_view line);
/// Python's str.rstrip() without arguments.
std::string_view without_trailing_space(std::string_view line);

}  // namespace nmt
