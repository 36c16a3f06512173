#pragma once

#include "nmt/vocabulary.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// What --shortlist says, as Marian spells it: FILE [FIRST [BEST [PRUNE]]].
struct ShortlistOptions {
  std::string path;
  int first = 100;   ///< so many of the most frequent target pieces, for every sentence
  int best = 100;    ///< so many of the likeliest translations of each source piece
  double prune = 0;  ///< less likely translations than this are left out

  /// Errors (usage): more than four words, numbers out of range.
  static ShortlistOptions parse(const std::vector<std::string>& words);
};

/// A lexical shortlist: which target pieces a sentence may be translated with (Jean et al., ACL
/// 2015, section 3.3; Devlin et al., EMNLP 2014). The output layer then computes only those.
///
/// The file has lines "TARGET SOURCE PROBABILITY", separated by blanks, in pieces of the model's
/// vocabularies: p(target | source), as scripts/data/make_shortlist.py writes them and Marian reads
/// them. SOURCE "NULL" gives a target piece's frequency: the FIRST ones are taken by it; in a file
/// without such lines they are the first of the vocabulary, Marian's rule.
class Shortlist {
 public:
  /// Errors (usage): no such file; (data): a line that is none, or with a piece that a vocabulary
  /// does not have; an empty file; in one line with the line's number.
  static Shortlist load(const ShortlistOptions& options, const Vocabulary& source,
                        const Vocabulary& target);

  /// The pieces that a source (ids without </s>) may be translated with, ascending; </s> is among
  /// them, <s> and <unk> are not.
  std::vector<std::int32_t> candidates(std::span<const std::int32_t> source) const;
  /// Translations kept, of all source pieces.
  std::int64_t size() const { return static_cast<std::int64_t>(targets_.size()); }

 private:
  std::vector<std::int32_t> always_;  // the frequent ones and </s>
  std::vector<std::int64_t> begin_;   // [source vocabulary + 1]: where a piece's translations stand
  std::vector<std::int32_t> targets_;
};

}  // namespace nmt
