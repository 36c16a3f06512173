#pragma once

#include "data/batch.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace nmt {

/// The word alignment of a batch for guided alignment, as links between pieces.
class BatchLinks : public BatchExtra {
 public:
  /// For each sentence, source and target piece of each link in turn, sorted by target, then source
  /// piece, without duplicates (piece_links()).
  explicit BatchLinks(std::vector<Ids> sentences) : sentences_(std::move(sentences)) {}
  std::shared_ptr<const BatchExtra> part(int first, int count, int stride) const override;
  const std::vector<Ids>& sentences() const { return sentences_; }

 private:
  std::vector<Ids> sentences_;
};

/// Links by target row t * sentences + b, in compressed rows: those of row r are
/// sources[offsets[r]] up to sources[offsets[r + 1]].
struct LinkedRows {
  std::vector<std::int32_t> offsets = {};  ///< [target_steps * sentences + 1]
  std::vector<std::int32_t> sources = {};
};
/// `target_steps` and `sentences` may be larger than those of the links, for padding.
LinkedRows linked_rows(const BatchLinks& links, int target_steps, int sentences);

}  // namespace nmt
