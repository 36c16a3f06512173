#include "text/noise.h"

#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace nmt {
namespace {

// Random number streams: one per epoch; data/pair_stream.cpp and data/training_data.cpp have the
// lower ones.
constexpr std::uint64_t kNoiseStream = std::uint64_t{3} << 32;
constexpr float kWordTypos = 0.1f;
constexpr std::size_t kShortest = 3;  // letters of a word with a typo

// Sentence-final marks of Latin, Greek, Cyrillic, Armenian, Arabic, Devanagari, Ethiopic and CJK
// text.
constexpr std::u32string_view final_marks =
    U".!?\u2026\u203C\u2047\u2048\u2049\u0589\u061F\u06D4\u0964\u0965\u1362\u1367\u3002\uFF01\uFF0E"
    U"\uFF1F\uFF61";

// Letters and their neighbors on a QWERTY keyboard; the German ones on a QWERTZ keyboard.
constexpr std::pair<char32_t, std::u32string_view> keyboard[] = {
    {U'a', U"qwsz"},
    {U'b', U"vghn"},
    {U'c', U"xdfv"},
    {U'd', U"serfcx"},
    {U'e', U"wsdr"},
    {U'f', U"drtgvc"},
    {U'g', U"ftyhbv"},
    {U'h', U"gyujnb"},
    {U'i', U"ujko"},
    {U'j', U"huikmn"},
    {U'k', U"jiolm"},
    {U'l', U"kop"},
    {U'm', U"njk"},
    {U'n', U"bhjm"},
    {U'o', U"iklp"},
    {U'p', U"ol"},
    {U'q', U"wa"},
    {U'r', U"edft"},
    {U's', U"awedxz"},
    {U't', U"rfgy"},
    {U'u', U"yhji"},
    {U'v', U"cfgb"},
    {U'w', U"qase"},
    {U'x', U"zsdc"},
    {U'y', U"tghu"},
    {U'z', U"asx"},
    {U'\u00DF', U"p\u00FC"},
    {U'\u00E4', U"\u00F6\u00FCp"},
    {U'\u00F6', U"l\u00E4p"},
    {U'\u00FC', U"p\u00E4\u00F6"},
};

bool is_letter(char32_t c) {
  return !is_space(c) && !is_punctuation(c) && !is_symbol(c) && !is_number(c);
}

struct Word {
  std::size_t begin, size;  // of its letters
};

// The words that can have a typo: letters, with punctuation around them at most.
std::vector<Word> words_of(std::u32string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && !is_space(line[end])) ++end;
    std::size_t begin = i, last = end;
    while (begin < last && is_punctuation(line[begin])) ++begin;
    while (last > begin && is_punctuation(line[last - 1])) --last;
    const std::u32string_view core = line.substr(begin, last - begin);
    if (core.size() >= kShortest && std::all_of(core.begin(), core.end(), is_letter))
      words.push_back({begin, core.size()});
    i = end + 1;
  }
  return words;
}

// A neighbor of the key, in the same case; the letter itself if it is not on the keyboard.
char32_t near_key(char32_t letter, Rng& rng) {
  const std::u32string small = lowercase_of({&letter, 1});
  for (const auto& [key, neighbors] : keyboard) {
    if (small.size() != 1 || key != small[0]) continue;
    const char32_t found = neighbors[rng.below(neighbors.size())];
    return small[0] == letter ? found : uppercase_of({&found, 1})[0];
  }
  return letter;
}

void add_typo(std::u32string& word, Rng& rng) {
  enum Kind { swap, drop, repeat, replace, insert, kinds };
  const auto kind = static_cast<Kind>(rng.below(kinds));
  const std::size_t at = rng.below(word.size());
  const char32_t letter = word[at];
  switch (kind) {
    case swap: {
      const std::size_t first = std::min(at, word.size() - 2);
      if (word[first] != word[first + 1])
        std::swap(word[first], word[first + 1]);
      else
        word.erase(first, 1);
      return;
    }
    case drop: word.erase(at, 1); return;
    case repeat: word.insert(at, 1, letter); return;
    case replace:
    case insert: {
      const char32_t other = near_key(letter, rng);
      if (kind == replace && other != letter)
        word[at] = other;
      else
        word.insert(at + rng.below(2), 1, other);
      return;
    }
    case kinds: return;
  }
}

bool drop_final_punctuation(std::u32string& line) {
  std::size_t end = line.size();
  while (end > 0 && is_space(line[end - 1])) --end;
  std::size_t rest = end;
  while (rest > 0 && final_marks.find(line[rest - 1]) != std::u32string_view::npos) --rest;
  const bool is_marked = rest < end;
  while (rest > 0 && is_space(line[rest - 1])) --rest;
  if (!is_marked || rest == 0) return false;
  line.resize(rest);
  return true;
}

}  // namespace

bool add_typos(std::u32string& line, Rng& rng) {
  const std::vector<Word> words = words_of(line);
  if (words.empty()) return false;
  const std::size_t certain = rng.below(words.size());
  std::vector<std::pair<Word, std::u32string>> changed;  // from the end
  for (std::size_t i = words.size(); i-- > 0;)
    if (rng.uniform() < kWordTypos || i == certain) {
      std::u32string word = line.substr(words[i].begin, words[i].size);
      add_typo(word, rng);
      changed.emplace_back(words[i], std::move(word));
    }
  std::u32string whole;
  std::size_t done = 0;
  for (auto at = changed.rbegin(); at != changed.rend(); ++at) {
    const auto& [word, with_typo] = *at;
    whole.append(line, done, word.begin - done).append(with_typo);
    done = word.begin + word.size;
  }
  line = whole.append(line, done);
  return true;
}

std::u32string without_final_punctuation(std::u32string line) {
  drop_final_punctuation(line);
  return line;
}

TextNoise::Draw TextNoise::draw(std::int64_t epoch, std::int64_t line) const {
  Draw drawn{.rng = Rng(seed_, kNoiseStream + static_cast<std::uint64_t>(epoch),
                        static_cast<std::uint64_t>(line) << 24)};
  const double of_case = drawn.rng.uniform(), upper = std::max(rates_.upper, 0.0);
  drawn.upper = of_case < upper;
  drawn.title = !drawn.upper && of_case < upper + rates_.title;
  drawn.typos = drawn.rng.uniform() < rates_.typos;
  drawn.punctuation = drawn.rng.uniform() < rates_.punctuation;
  return drawn;
}

bool TextNoise::any() const {
  return std::max({rates_.upper, rates_.title, rates_.typos, rates_.punctuation}) > 0;
}

bool TextNoise::apply(std::string& source, std::string& target, std::int64_t epoch,
                      std::int64_t line) const {
  Draw drawn = draw(epoch, line);
  if (!drawn.upper && !drawn.title && !drawn.typos && !drawn.punctuation) return false;
  std::u32string from = decode_utf8(source), to = decode_utf8(target);
  if (drawn.punctuation) {
    std::u32string short_from = from, short_to = to;
    if (drop_final_punctuation(short_from) && drop_final_punctuation(short_to)) {
      from = std::move(short_from);
      to = std::move(short_to);
    }
  }
  if (drawn.typos) add_typos(from, drawn.rng);
  for (std::u32string* text : {&from, &to}) {
    if (drawn.upper) *text = uppercase_of(*text);
    if (drawn.title) *text = capitalized_words_of(*text);
  }
  std::string new_source = encode_utf8(from), new_target = encode_utf8(to);
  const bool changed = new_source != source || new_target != target;
  source = std::move(new_source);
  target = std::move(new_target);
  return changed;
}

bool TextNoise::apply_case(std::string& text, std::int64_t epoch, std::int64_t line) const {
  const Draw drawn = draw(epoch, line);
  if (!drawn.upper && !drawn.title) return false;
  const std::u32string before = decode_utf8(text);
  text = encode_utf8(drawn.upper ? uppercase_of(before) : capitalized_words_of(before));
  return true;
}

}  // namespace nmt
