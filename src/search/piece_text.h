#pragma once

#include "nmt/vocabulary.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nmt {

/// Text that consists of pieces, "▁The ▁qu ick ▁fox" (Marian's --no-spm-encode and
/// --no-spm-decode). Unlike plain text it determines the segmentation.
class PieceText {
 public:
  explicit PieceText(const Vocabulary& vocabulary);

  /// Ids of the pieces of a line, separated by white space; <unk> for unknown pieces.
  std::vector<std::int32_t> encode(std::string_view line) const;
  /// The pieces, separated by spaces.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace nmt
