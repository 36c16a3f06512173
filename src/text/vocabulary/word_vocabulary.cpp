#include "text/vocabulary/word_vocabulary.h"

#include "core/error.h"
#include "core/log.h"
#include "text/vocabulary/sentencepiece_check.h"
#include "text/vocabulary/sentencepiece_fields.h"
#include "text/vocabulary/sentencepiece_model.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace nmt {
namespace {

constexpr std::string_view white_space = " \t\r\v\f\n", mark = "\xe2\x96\x81";
constexpr std::string_view unknown = "<unk>";

namespace proto = sentencepiece_fields;

// The wire format of a protocol buffer message.
class Message {
 public:
  void add(std::uint64_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void add(std::uint64_t field, float value) {
    varint(field << 3 | 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }
  void add(std::uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

void add_piece(Message& model, std::string_view text, std::uint64_t type, float score) {
  Message piece;
  piece.add(proto::text, text);
  piece.add(proto::score, score);
  piece.add(proto::type, type);
  model.add(proto::piece, std::string_view(piece.bytes()));
}

template <class Use>
void each_word(std::string_view line, const Use& use) {
  for (std::size_t at = 0; (at = line.find_first_not_of(white_space, at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(white_space, at), line.size());
    use(line.substr(at, end - at));
    at = end;
  }
}

std::string piece_of(std::string_view word) {
  return std::string(mark).append(word);
}

}  // namespace

Vocabulary word_vocabulary(const std::vector<std::string>& words) {
  Message model;
  add_piece(model, unknown, proto::unknown, 0);
  add_piece(model, "<s>", proto::control, 0);
  add_piece(model, "</s>", proto::control, 0);
  std::unordered_set<std::string_view> known;
  for (const std::string& word : words) {
    if (word.empty() || word.find_first_of(white_space) != word.npos ||
        word.size() + mark.size() > max_piece_bytes || !known.insert(word).second)
      fail(ExitStatus::usage,
           "vocabulary: the word '{}' is empty, contains white space, is too long, or occurs twice",
           word.substr(0, 80));
    add_piece(model, piece_of(word), proto::normal, -static_cast<float>(known.size()));
  }
  Message trainer, normalizer;
  trainer.add(proto::model_type, static_cast<std::uint64_t>(VocabularyType::word));
  normalizer.add(proto::name, std::string_view("identity"));
  model.add(proto::trainer, std::string_view(trainer.bytes()));
  model.add(proto::normalizer, std::string_view(normalizer.bytes()));
  return Vocabulary::from_bytes(model.bytes(), "the words");
}

std::vector<std::string> words_of(const Vocabulary& vocabulary) {
  constexpr std::int32_t first = 3;
  std::vector<std::string> words;
  for (std::int32_t id = first; id < vocabulary.size(); ++id) {
    const std::string piece = vocabulary.piece(id);
    words.push_back(piece.substr(piece.starts_with(mark) ? mark.size() : 0));
  }
  return words;
}

TrainedVocabulary train_word_vocabulary(std::int64_t lines, const LineAt& line,
                                        const VocabularyTraining& training, std::string_view name) {
  if (training.size < 4)
    fail(ExitStatus::usage, "vocabulary size {}: at least 4 is needed", training.size);
  std::unordered_map<std::string, std::int64_t> counts;
  std::int64_t used = 0;
  for (std::int64_t i = 0; i < lines; ++i) {
    bool any = false;
    each_word(line(i), [&](std::string_view word) {
      any = true;
      if (word != unknown && word.size() + mark.size() <= max_piece_bytes)
        ++counts[std::string(word)];
    });
    used += any;
  }
  if (counts.empty())
    fail(ExitStatus::data, "{}: no text to train a vocabulary on in {} lines", name, lines);
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const std::size_t kept = std::min(sorted.size(), static_cast<std::size_t>(training.size) - 3);
  std::int64_t all = 0, covered = 0;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    all += sorted[i].second;
    if (i >= kept) continue;
    covered += sorted[i].second;
    words.push_back(std::move(sorted[i].first));
  }
  log::info("{}: {} of {} words, {:.2f} % of the text", name, kept, sorted.size(),
            100.0 * static_cast<double>(covered) / static_cast<double>(all));
  return {word_vocabulary(words), used, 0, 1.0};
}

}  // namespace nmt
