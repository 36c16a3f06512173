#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// How a vocabulary is learned.
struct VocabularyTraining {
  int size = 8000;                     ///< pieces, <unk>, <s> and </s> included
  std::int64_t max_lines = 2'000'000;  ///< evenly spaced lines to learn from
  std::size_t max_line_bytes = 4096;   ///< longer lines are skipped; at most 16,383
};

/// A SentencePiece model (Kudo & Richardson 2018): raw text to piece ids and back. Ids: <unk> 0,
/// <s> 1, </s> 2. In a model of type WORD, every word between spaces has one id.
///
/// Thread safety: const members may be called from several threads at once.
class Vocabulary {
 public:
  /// Reads a .spm or .model file. Errors: (usage) it cannot be opened; (data) truncated or not a
  /// SentencePiece model.
  static Vocabulary load(const std::string& path);
  /// From the serialized model's bytes; `name` is for messages. Errors (data): as load().
  static Vocabulary from_bytes(std::string_view bytes, const std::string& name);
  /// Learns byte-pair encoding (Sennrich et al. 2016) from lines of UTF-8. The same lines give the
  /// same vocabulary. Where the text has too few different pieces, or more characters than pieces,
  /// size() is the nearest possible size. Errors: (usage) a size below 4; (data) no line has text.
  static Vocabulary train(const std::vector<std::string>& lines,
                          const VocabularyTraining& training = {});
  /// Writes the model to a file, whole or not at all. Errors: (usage) it cannot be created, or its
  /// name is "" or "-"; (failed) it cannot be written.
  void save(const std::string& path) const;

  Vocabulary(Vocabulary&&) noexcept;
  Vocabulary& operator=(Vocabulary&&) noexcept;
  ~Vocabulary();

  /// Number of pieces.
  int size() const;
  std::int32_t unk() const { return 0; }
  std::int32_t bos() const { return 1; }
  std::int32_t eos() const { return 2; }

  /// Piece ids of a line of valid UTF-8, without <s> and </s>.
  std::vector<std::int32_t> encode(std::string_view line) const;
  /// The text of piece ids; <s> and </s> are skipped. Error (failed): an id out of range.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// The piece itself, U+2581 for a space. Error (failed): an id out of range.
  std::string piece(std::int32_t id) const;
  /// Whether a piece starts a new word (begins with U+2581). Error (failed): an id out of range.
  bool starts_word(std::int32_t id) const;
  /// The serialized model.
  const std::string& bytes() const;

 private:
  Vocabulary();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
