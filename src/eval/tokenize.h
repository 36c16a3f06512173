#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// How a line is tokenized before n-grams are counted. The names are sacreBLEU's.
enum class BleuTokenizer {
  /// mteval-v13a, the default: separates ASCII punctuation, keeps numbers intact, unescapes four
  /// entities.
  v13a,
  intl,  ///< mteval-v14 --international-tokenization: Unicode punctuation and symbols
  none,  ///< white space only
  /// multi-bleu.perl, for tokenized text: byte-wise, ASCII white space and letter case only.
  multi_bleu
};
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
