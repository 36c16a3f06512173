#pragma once

#include "nmt/vocabulary.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nmt {

/// Text that is in pieces already, "▁The ▁qu ick ▁fox": Marian's --no-spm-encode and
/// --no-spm-decode. Unlike plain text it says which of several possible segmentations is meant.
class PieceText {
 public:
  explicit PieceText(const Vocabulary& vocabulary);

  /// Ids of the pieces of a line, separated by white space; <unk> for one that the vocabulary does
  /// not have.
  std::vector<std::int32_t> encode(std::string_view line) const;
  /// The pieces with a space between them.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace nmt
