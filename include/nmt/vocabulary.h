#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A SentencePiece model (Kudo & Richardson 2018): converts raw text to piece ids and back. Ids:
/// <unk> 0, <s> 1, </s> 2. Thread-safe once loaded.
class Vocabulary {
 public:
  /// Reads a .spm/.model file. Errors: (usage) it cannot be opened; (data) truncated or not a
  /// SentencePiece model.
  static Vocabulary load(const std::string& path);
  /// Reads a serialized model; `name` is for error messages.
  static Vocabulary from_bytes(std::string_view bytes, const std::string& name);

  Vocabulary(Vocabulary&&) noexcept;
  Vocabulary& operator=(Vocabulary&&) noexcept;
  ~Vocabulary();

  int size() const;
  std::int32_t unk() const { return 0; }
  std::int32_t bos() const { return 1; }
  std::int32_t eos() const { return 2; }

  /// Piece ids of a line of valid UTF-8, without <s> and </s>.
  std::vector<std::int32_t> encode(std::string_view line) const;
  /// The text of piece ids; <s> and </s> are skipped.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// The text of a piece; "▁" stands for a space.
  std::string piece(std::int32_t id) const;
  /// Whether a piece starts a new word (begins with "▁").
  bool starts_word(std::int32_t id) const;
  const std::string& bytes() const;

 private:
  Vocabulary();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
