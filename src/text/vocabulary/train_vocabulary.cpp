#include "text/vocabulary/train_vocabulary.h"

#include "core/error.h"
#include "core/log.h"
#include "text/utf8.h"

#include <algorithm>
#include <charconv>
#include <clocale>
#include <locale>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sentencepiece_trainer.h>

namespace nmt {

namespace {

/// Evenly sampled lines, without blank and overlong ones.
class Sample : public sentencepiece::SentenceIterator {
 public:
  Sample(std::int64_t lines, const LineAt& line, const VocabularyTraining& training)
      : taken_(std::min(lines, training.max_lines)),
        lines_(lines),
        line_(line),
        limit_(training.max_line_bytes) {
    find();
  }

  bool done() const override { return at_ == taken_; }
  void Next() override {
    ++at_;
    find();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

  std::int64_t too_long() const { return too_long_; }

 private:
  void find() {
    for (; at_ < taken_; ++at_) {
      const std::int64_t whole = lines_ / taken_,
                         // at * lines / taken, without overflow.
          rest = lines_ % taken_;
      const std::string_view line = line_(at_ * whole + at_ * rest / taken_);
      if (line.size() > limit_) {
        ++too_long_;
      } else if (line.find_first_not_of(" \t\r\v\f") != std::string_view::npos) {
        value_ = line;
        return;
      }
    }
  }
  std::int64_t at_ = 0, taken_, lines_, too_long_ = 0;
  const LineAt& line_;
  std::size_t limit_;
  std::string value_;
};

/// Counts the distinct code points of valid UTF-8.
class Alphabet {
 public:
  void add(std::string_view text) {
    std::uint32_t point = 0;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 && byte < 0xC0) {
        point = point << 6 | (byte & 0x3Fu);
        continue;
      }
      see(point);
      point = byte < 0x80   ? byte
              : byte < 0xE0 ? byte & 0x1Fu
              : byte < 0xF0 ? byte & 0x0Fu
                            : byte & 0x07u;
    }
    see(point);
  }
  int size() const { return size_; }

 private:
  void see(std::uint32_t point) {
    const std::size_t at = point & 0x1FFFFF;
    size_ += !seen_[at];
    seen_[at] = true;
  }
  std::vector<bool> seen_ = std::vector<bool>(0x200000);
  int size_ = 0;
};

/// The number of pieces that the characters alone need, parsed from SentencePiece's error "... SIZE
/// vs NEEDED. ..."; 0 for other errors.
int pieces_needed(const std::string& message) {
  if (message.find("smaller than required_chars") == std::string::npos) return 0;
  const std::size_t at = message.rfind(" vs ");
  int needed = 0;
  if (at != std::string::npos)
    std::from_chars(message.data() + at + 4, message.data() + message.size(), needed);
  return needed;
}

/// While one exists, the global C++ locale writes numbers with a point and without groups:
/// SentencePiece reads its settings by it. Where it does so anyway, nothing changes. The C locale
/// stays as it is.
class PlainNumbers {
 public:
  PlainNumbers() {
    const std::lock_guard lock(mutex_);
    if (objects_++ > 0) return;
    const std::locale now;
    const auto& numbers = std::use_facet<std::numpunct<char>>(now);
    if (numbers.decimal_point() == '.' && numbers.grouping().empty()) return;
    before_ = now;
    std::locale::global(std::locale(now, new std::numpunct<char>));
  }
  ~PlainNumbers() {
    const std::lock_guard lock(mutex_);
    if (--objects_ > 0 || !before_) return;
    const std::string of_c = std::setlocale(LC_ALL, nullptr);
    std::locale::global(*before_);  // sets the C locale to one of the same name, if it has one
    std::setlocale(LC_ALL, of_c.c_str());
    before_.reset();
  }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int objects_ = 0;
  static inline std::optional<std::locale> before_;  // where it was changed
};

}  // namespace

TrainedVocabulary train_vocabulary(std::int64_t lines, const LineAt& line,
                                   const VocabularyTraining& training, std::string_view name) {
  if (training.size < 4)
    fail(ExitStatus::usage, "vocabulary size {}: at least 4 is needed", training.size);
  if (training.max_lines < 1)
    fail(ExitStatus::usage, "vocabulary lines {}: at least 1 is needed", training.max_lines);
  if (training.max_line_bytes > max_vocabulary_line_bytes)
    fail(ExitStatus::usage, "vocabulary lines of {} bytes: expected at most {}",
         training.max_line_bytes, max_vocabulary_line_bytes);

  Alphabet alphabet;
  std::int64_t used = 0, too_long = 0;
  if (lines > 0) {
    Sample sample(lines, line, training);
    for (; !sample.done(); sample.Next(), ++used) alphabet.add(sample.value());
    too_long = sample.too_long();
  }
  const auto no_text = [&] {
    fail(ExitStatus::data, "{}: no text to train a vocabulary on in {} lines{}", name, lines,
         too_long > 0 ? fmt::format("; {} lines over {} bytes were skipped", too_long,
                                    training.max_line_bytes)
                      : "");
  };
  if (used == 0) no_text();
  const bool small = alphabet.size() <= std::max(256, training.size / 20);

  // One thread, because the result depends on how SentencePiece splits the work. The vocabulary
  // limit is soft: too little text gives fewer pieces instead of an error.
  std::unordered_map<std::string, std::string> settings{
      {"model_type", "bpe"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "3"},
      {"hard_vocab_limit", "false"},
      {"character_coverage", small ? "1.0" : "0.9995"},
      {"max_sentence_length", std::to_string(training.max_line_bytes)}};
  const PlainNumbers plain_numbers;
  std::string model;
  for (int size = training.size;;) {
    settings["vocab_size"] = std::to_string(size);
    Sample sample(lines, line, training);
    const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sample, &model);
    if (status.ok()) break;
    if (status.ToString().find("sentences_.empty()") != std::string::npos) no_text();
    const int needed = pieces_needed(status.ToString());
    NMT_CHECK(needed >= size, "{}: cannot train a vocabulary: {}", name, status.ToString());
    size = needed + 1;
  }

  TrainedVocabulary trained{Vocabulary::from_bytes(model, std::string(name)), used, too_long,
                            small ? 1.0 : 0.9995};
  const int size = trained.vocabulary.size();
  if (size <= 3) no_text();  // only characters that SentencePiece drops
  if (size < training.size) {
    log::info("{}: {} pieces instead of {}; the text has no more distinct pieces", name, size,
              training.size);
  } else if (size > training.size) {
    log::info("{}: {} pieces instead of {}; its characters need this many", name, size,
              training.size);
  }
  return trained;
}

Vocabulary Vocabulary::train(const std::vector<std::string>& lines,
                             const VocabularyTraining& training) {
  std::string repaired;
  const auto line = [&](std::int64_t i) -> std::string_view {
    const std::string& text = lines[static_cast<std::size_t>(i)];
    if (is_valid_utf8(text)) return text;
    repaired.clear();
    repair_utf8(text, repaired);
    return repaired;
  };
  return train_vocabulary(static_cast<std::int64_t>(lines.size()), line, training, "the lines")
      .vocabulary;
}

}  // namespace nmt
