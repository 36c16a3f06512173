#include "nmt/vocabulary.h"

#include "core/error.h"
#include "core/files/file.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/vocabulary/sentencepiece_check.h"
#include "text/vocabulary/sentencepiece_model.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <sentencepiece_processor.h>

namespace nmt {

namespace {
constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581 stands for a space in pieces
constexpr std::size_t kStretch =
    4096;  // minimum distance in bytes between cuts in runs of unknown characters
constexpr int max_combining = 30;  // after one character in stream-safe text (Unicode, UAX 15)

// Whether the first character of the text may become one with the character before it (NFKC): a
// combining mark, a voiced sound mark of half-width katakana, or a vowel or final consonant of a
// Hangul syllable, in the blocks of jamo, compatibility jamo and half-width forms.
bool joins_previous(std::string_view text) {
  constexpr std::pair<char32_t, char32_t> others[] = {
      {0x1160, 0x11FF}, {0x3133, 0x3133}, {0x3135, 0x3136}, {0x313A, 0x3140}, {0x314F, 0x3163},
      {0xFF9E, 0xFF9F}, {0xFFA3, 0xFFA3}, {0xFFA5, 0xFFA6}, {0xFFAA, 0xFFB0}, {0xFFC2, 0xFFDC}};
  const char32_t c = code_point(text);
  return is_combining(c) || std::any_of(std::begin(others), std::end(others), [&](const auto& r) {
           return c >= r.first && c <= r.second;
         });
}

std::size_t next_character(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && continues_character(text[at]);) ++at;
  return at;
}
std::size_t previous_character(std::string_view text, std::size_t at) {
  for (--at; at > 0 && continues_character(text[at]);) --at;
  return at;
}
}  // namespace

struct Vocabulary::Impl {
  sentencepiece::SentencePieceProcessor processor;
  std::string bytes;
  bool whole_words = false;
  std::unordered_map<std::string, std::int32_t> words;  ///< of whole words

  std::vector<int> encode(std::string_view text) const {
    std::vector<int> ids;
    const auto status = processor.Encode(text, &ids);
    NMT_CHECK(status.ok(), "vocabulary: cannot encode a line of {} bytes: {}", text.size(),
              status.ToString());
    return ids;
  }
  /// Whether the first character of the text belongs to the one before it: it joins it, or
  /// normalization removes it, as it does control characters.
  bool continues_previous(std::string_view text) const {
    if (joins_previous(text)) return true;
    const std::string_view character = text.substr(0, next_character(text, 0));
    return static_cast<unsigned char>(character[0]) < 0x20 && character[0] != '\t' &&
           encode(character).empty();
  }
  /// Behind the characters from `at` on that belong to the one before.
  std::size_t behind_joined(std::string_view text, std::size_t at) const {
    for (int i = 0; i < max_combining && at < text.size() && continues_previous(text.substr(at));
         ++i)
      at = next_character(text, at);
    return at;
  }
  /// Whether a character and all its marks are unknown.
  bool is_unknown(std::string_view character) const {
    const std::vector<int> ids = encode(character);
    const bool added_space = !ids.empty() && processor.IdToPiece(ids[0]) == kSpace;
    return ids.size() > added_space &&
           std::all_of(ids.begin() + added_space, ids.end(),
                       [&](int id) { return id == processor.unk_id(); });
  }
  /// Whether the characters directly before and after the character boundary `at` are both unknown,
  /// each with the marks behind it.
  bool within_unknown(std::string_view line, std::size_t at) const {
    std::size_t before = previous_character(line, at);
    for (int i = 0; i < max_combining && before > 0 && continues_previous(line.substr(before)); ++i)
      before = previous_character(line, before);
    const std::size_t end = behind_joined(line, next_character(line, at));
    // The two together as well: some characters normalize to a space and a mark, and a text alone
    // loses a space at its beginning.
    return is_unknown(line.substr(before, at - before)) && is_unknown(line.substr(at, end - at)) &&
           is_unknown(line.substr(before, end - before));
  }
};

Vocabulary::Vocabulary() : impl_(std::make_unique<Impl>()) {}
Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;

Vocabulary Vocabulary::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(ExitStatus::usage, "vocabulary {}: cannot be opened; expected a SentencePiece model",
         path);
  // One byte above the limit, which from_bytes() then reports: `path` may be endless.
  std::string bytes;
  std::vector<char> block(1 << 20);
  while (bytes.size() <= max_vocabulary_bytes && file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    bytes.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || bytes.empty()) {
    fail(ExitStatus::data, "vocabulary {}: is empty or unreadable; expected a SentencePiece model",
         path);
  }
  return from_bytes(bytes, path);
}

Vocabulary Vocabulary::from_bytes(std::string_view bytes, const std::string& name) {
  Vocabulary vocabulary;
  Impl& impl = *vocabulary.impl_;
  if (const std::string defect = sentencepiece_defect(bytes); !defect.empty())
    fail(ExitStatus::data, "vocabulary {}: {}", name, defect);
  impl.bytes = bytes;
  if (!impl.processor.LoadFromSerializedProto(impl.bytes).ok()) {
    fail(ExitStatus::data, "vocabulary {}: not a complete SentencePiece model", name);
  }
  impl.whole_words = vocabulary_type(impl.bytes) == VocabularyType::word;
  const auto& processor = impl.processor;
  if (processor.unk_id() != 0 || processor.bos_id() != 1 || processor.eos_id() != 2) {
    fail(ExitStatus::data,
         "vocabulary {}: the ids of <unk>, <s>, </s> are {}, {}, {}; expected 0, 1, 2", name,
         processor.unk_id(), processor.bos_id(), processor.eos_id());
  }
  if (impl.whole_words)
    for (int id = 3; id < processor.GetPieceSize(); ++id)
      if (const std::string& piece = processor.IdToPiece(id); piece.starts_with(kSpace))
        impl.words.emplace(piece.substr(kSpace.size()), id);
  return vocabulary;
}

int Vocabulary::size() const {
  return impl_->processor.GetPieceSize();
}

// SentencePiece takes quadratic time in the length of a run of unknown characters: more than a
// minute for 1 MB of binary data. Long runs are therefore cut, which adds a few <unk> and changes
// nothing else.
std::vector<std::int32_t> Vocabulary::encode(std::string_view line) const {
  std::vector<std::int32_t> ids;
  if (impl_->whole_words) {
    // One at a time: SentencePiece joins neighboring unknown words to one <unk>.
    constexpr std::string_view spaces = " \t\r\v\f";
    for (std::size_t at = 0; (at = line.find_first_not_of(spaces, at)) != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(spaces, at), line.size());
      const std::string word(line.substr(at, end - at));
      if (const auto known = impl_->words.find(word); known != impl_->words.end()) {
        ids.push_back(known->second);
      } else {  // SentencePiece may normalize it to a known one
        const std::vector<int> others = impl_->encode(word);
        ids.insert(ids.end(), others.begin(), others.end());
      }
      at = end;
    }
    return ids;
  }
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    const std::vector<int> some = impl_->encode(line.substr(begin, end - begin));
    // SentencePiece prepends a space to every text; the rest of a run has none.
    const bool added_space =
        begin > 0 && !some.empty() && impl_->processor.IdToPiece(some[0]) == kSpace;
    ids.insert(ids.end(), some.begin() + added_space, some.end());
    begin = end;
  };
  for (std::size_t at = kStretch; at < line.size(); at += kStretch) {
    while (at < line.size() && continues_character(line[at])) ++at;
    at = impl_->behind_joined(line, at);
    if (at < line.size() && impl_->within_unknown(line, at)) add(at);
  }
  add(line.size());
  return ids;
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
  std::vector<int> kept;
  kept.reserve(ids.size());
  for (const std::int32_t id : ids) {
    NMT_CHECK(id >= 0 && id < size(), "vocabulary: id {} is outside 0..{}", id, size() - 1);
    if (id != bos() && id != eos()) kept.push_back(id);
  }
  std::string text;
  const auto status = impl_->processor.Decode(kept, &text);
  NMT_CHECK(status.ok(), "vocabulary: cannot decode {} ids: {}", kept.size(), status.ToString());
  return text;
}

std::string Vocabulary::piece(std::int32_t id) const {
  NMT_CHECK(id >= 0 && id < size(), "vocabulary: id {} is outside 0..{}", id, size() - 1);
  return impl_->processor.IdToPiece(id);
}

bool Vocabulary::starts_word(std::int32_t id) const {
  NMT_CHECK(id >= 0 && id < size(), "vocabulary: id {} is outside 0..{}", id, size() - 1);
  return impl_->processor.IdToPiece(id).starts_with(kSpace);
}

// Standard output, which "" and "-" are for AtomicFile, is that of the program.
void Vocabulary::save(const std::string& path) const {
  if (path.empty() || path == "-")
    fail(ExitStatus::usage, "vocabulary: save to '{}'; expected the name of a file", path);
  AtomicFile file(path, static_cast<std::int64_t>(impl_->bytes.size()));
  file.write(impl_->bytes);
  file.commit();
}

const std::string& Vocabulary::bytes() const {
  return impl_->bytes;
}

}  // namespace nmt
