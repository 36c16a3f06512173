#pragma once

#include "nmt/metrics.h"

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Parses "13a", "intl", "none" or "multi-bleu". Error (usage): another name.
BleuTokenizer bleu_tokenizer(std::string_view name);
const char* name_of(BleuTokenizer tokenizer);

/// The tokens of a line of valid UTF-8. White space is Unicode white space as in Python's
/// str.split().
std::vector<std::string> tokenize(BleuTokenizer tokenizer, std::string_view line);
/// Python's str.split() without arguments.
std::vector<std::string> split_words(std::string_view line);
/// Python's str.rstrip() without arguments.
std::string_view without_trailing_space(std::string_view line);

}  // namespace nmt
