#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// How a line is cut into words before n-grams are counted; sacreBLEU's names.
enum class BleuTokenizer {
  /// mteval-v13a, the default: separates ASCII punctuation, keeps numbers whole, resolves four
  /// entities.
  v13a,
  intl,  ///< mteval-v14 --international-tokenization: Unicode punctuation and symbols
  none,  ///< white space alone
  /// multi-bleu.perl on text tokenized before: bytes, ASCII white space and letter case alone.
  multi_bleu
};
/// "13a", "intl", "none", "multi-bleu"; fails (usage) on another name, with the known ones.
BleuTokenizer bleu_tokenizer(std::string_view name);
const char* name_of(BleuTokenizer tokenizer);

/// The words of a line of valid UTF-8. White space is Python's str.split(): the Unicode one.
std::vector<std::string> tokenize(BleuTokenizer tokenizer, std::string_view line);
/// Python's str.split() without arguments.
std::vector<std::string> split_words(std::string_view line);
/// Python's str.rstrip() without arguments.
std::string_view without_trailing_space(std::string_view line);

}  // namespace nmt
