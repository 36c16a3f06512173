#pragma once

#include "data/batch.h"
#include "nmt/vocabulary.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nmt {

/// The distinct words of the texts of a tagger, numbered from 0 as they come. Batches contain these
/// numbers; a word's entry says what the model reads: its id in the vocabulary and its characters.
class WordForms {
 public:
  /// Symbols of characters: the bytes of UTF-8, then the beginning and the end of a word.
  static constexpr int characters = 258;
  /// Of a longer word, the first and the last half of as many bytes are read.
  static constexpr std::size_t max_bytes = 16;

  /// The vocabulary consists of words and must outlive the forms.
  explicit WordForms(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// The number of a word, which is added if it is new.
  std::int32_t add(const std::string& word);
  Ids add(std::span<const std::string> words);

  /// Forgets all words. Numbers from before must not be used.
  void clear();

  std::int32_t size() const { return static_cast<std::int32_t>(ids_.size()); }
  /// The id in the vocabulary; <unk> if it does not contain the word.
  std::int32_t id(std::int32_t form) const { return ids_[static_cast<std::size_t>(form)]; }
  /// Begin symbol, bytes, end symbol.
  std::span<const std::int32_t> symbols(std::int32_t form) const;

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::int32_t> numbers_;
  Ids ids_;
  std::vector<std::size_t> ends_;  // in symbols_
  Ids symbols_;
};

}  // namespace nmt
