#include "search/text/repetition_guard.h"

#include "search/repetition.h"
#include "text/unicode.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace nmt {
namespace {

constexpr std::size_t short_source = 4;    // words
constexpr std::size_t short_unspaced = 7;  // characters of scripts without spaces
constexpr std::size_t longest = 8;         // words of a sequence
constexpr std::size_t min_of_pieces = 5;   // occurrences

struct Words {
  std::vector<std::string_view> raw;
  std::vector<std::string> plain;  // lower case, without punctuation at the ends
};

Words words_of(std::string_view text) {
  constexpr std::string_view white_space = " \t\v\f\r\n";
  Words words;
  for (std::size_t at = 0;;) {
    const std::size_t begin = text.find_first_not_of(white_space, at);
    if (begin == std::string_view::npos) return words;
    at = std::min(text.find_first_of(white_space, begin), text.size());
    const std::string_view raw = text.substr(begin, at - begin);
    std::string_view core = raw;
    const auto punctuation = [](char c) {
      return std::ispunct(static_cast<unsigned char>(c)) != 0;
    };
    while (!core.empty() && punctuation(core.front())) core.remove_prefix(1);
    while (!core.empty() && punctuation(core.back())) core.remove_suffix(1);
    std::string plain(core.empty() ? raw : core);
    for (char& c : plain) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    words.raw.push_back(raw);
    words.plain.push_back(std::move(plain));
  }
}

// Of scripts that write no spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, Chinese and
// Japanese.
bool is_unspaced(char32_t c) {
  return ((c >= 0xE00 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
          (c >= 0x2E80 && c <= 0x312F) || (c >= 0x3190 && c <= 0x9FFF) ||
          (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9F) ||
          (c >= 0x1B000 && c <= 0x1B16F) || (c >= 0x20000 && c <= 0x3FFFF)) &&
         !is_punctuation(c) && !is_space(c);
}

std::u32string unspaced_of(std::string_view text) {
  std::u32string characters = decode_utf8(text);
  std::erase_if(characters, [](char32_t c) { return !is_unspaced(c); });
  return characters;
}

// The sequence of `shortest` to `longest` words with the most occurrences in a row.
template <class Sequence>
OutputRepetition most_repeated(const Sequence& words, std::size_t shortest = 1) {
  OutputRepetition best;
  best.of_words = true;
  best.times = 1;
  for (std::size_t length = shortest; length <= longest && 2 * length <= words.size(); ++length) {
    std::size_t run = 0;  // equal words at distance `length`
    for (std::size_t i = length; i < words.size(); ++i) {
      run = words[i] == words[i - length] ? run + 1 : 0;
      if (const std::size_t times = run / length + 1; times > best.times) {
        best.times = times;
        best.length = length;
        best.begin = i + 1 - run - length;
      }
    }
  }
  return best;
}

// Two equal characters are often one word.
std::size_t repeated_characters(const std::u32string& characters) {
  const std::size_t times = most_repeated(characters).times;
  return times > 2 ? times : most_repeated(characters, 2).times;
}

}  // namespace

OutputRepetition find_output_repetition(std::string_view source,
                                        std::span<const std::int32_t> source_ids,
                                        std::string_view output,
                                        std::span<const std::int32_t> output_ids) {
  const Words from = words_of(source), to = words_of(output);
  OutputRepetition words = most_repeated(to.plain);
  const std::u32string unspaced = unspaced_of(source);
  const bool is_short = from.plain.size() <= short_source && unspaced.size() <= short_unspaced;
  if (words.times >= (is_short ? 2u : 3u) && words.times > most_repeated(from.plain).times &&
      words.times > repeated_characters(unspaced)) {
    words.found = true;
    return words;
  }
  const Repetition pieces = longest_repetition(output_ids);
  OutputRepetition result;
  if (pieces.times >= static_cast<int>(min_of_pieces) &&
      pieces.times > longest_repetition(source_ids).times + 1) {
    result.found = true;
    result.begin = static_cast<std::size_t>(pieces.begin);
    result.length = static_cast<std::size_t>(pieces.length);
    result.times = static_cast<std::size_t>(pieces.times);
  }
  return result;
}

std::string without_repeated_words(std::string_view text, const OutputRepetition& repetition) {
  const Words words = words_of(text);
  const std::size_t last = repetition.begin + repetition.length * repetition.times - 1,
                    kept = repetition.begin + repetition.length - 1;
  const auto end_of = [&](std::size_t word) {
    return static_cast<std::size_t>(words.raw[word].data() + words.raw[word].size() - text.data());
  };
  const std::string_view kept_word = words.raw[kept], last_word = words.raw[last];
  std::string result(text.substr(0, end_of(kept)));
  const auto is_closed = [](std::string_view word) {
    return std::ispunct(static_cast<unsigned char>(word.back())) != 0;
  };
  if (is_closed(kept_word) && words.plain[kept].size() < kept_word.size())
    while (is_closed(result)) result.pop_back();
  std::size_t tail = last_word.size();
  while (tail > 0 && is_closed(last_word.substr(0, tail))) --tail;
  if (tail > 0) result += last_word.substr(tail);
  result += text.substr(end_of(last));
  return result;
}

}  // namespace nmt
