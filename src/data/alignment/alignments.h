#pragma once

#include "data/corpus.h"
#include "text/alignment.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A file with the word alignment of a corpus, a line of links for each pair. Reading is
/// thread-safe.
class Alignments {
 public:
  /// The corpus must outlive this object. Errors: (usage) as MappedFile; (data) it does not have as
  /// many lines as the corpus has pairs.
  Alignments(const std::string& path, const ParallelCorpus& corpus);

  /// The links of a pair. Error (data): as read_pharaoh().
  std::vector<AlignmentPoint> links(std::int64_t pair) const;
  /// Reads all links. Error (data): as links().
  void check() const;
  TextIdentity identity() const { return file_.identity(); }

 private:
  const ParallelCorpus& corpus_;
  TextFile file_;
};

}  // namespace nmt
