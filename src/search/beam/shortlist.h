#pragma once

#include "nmt/vocabulary.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// The arguments of --shortlist, as in Marian: FILE [FIRST [BEST [PRUNE]]].
struct ShortlistOptions {
  static constexpr std::string_view off = "off";  ///< instead of FILE: none

  std::string path;
  int first = 100;   ///< number of most frequent target pieces, allowed in every sentence
  int best = 100;    ///< number of most probable translations per source piece
  double prune = 0;  ///< minimum probability of a translation

  /// Nothing if there are no arguments, or `off` alone. Errors (usage): more than four arguments,
  /// or a number out of range.
  static std::optional<ShortlistOptions> parse(const std::vector<std::string>& words);
};

/// The SOURCE of the lines of a shortlist that give frequencies of target pieces.
inline constexpr std::string_view shortlist_no_source = "NULL";

/// A lexical shortlist: the target pieces that a sentence may be translated with (Jean et al., ACL
/// 2015, section 3.3; Devlin et al., EMNLP 2014). The output layer computes only those.
///
/// The file has lines "TARGET SOURCE PROBABILITY", separated by blanks, in pieces of the model's
/// vocabularies: p(target | source), as scripts/data/make_shortlist.py writes and Marian reads
/// them. SOURCE "NULL" gives the frequency of a target piece, which selects the FIRST pieces; a
/// file without such lines uses the first pieces of the vocabulary, as Marian does.
class Shortlist {
 public:
  /// Errors: (usage) the file cannot be opened; (data) the file is empty, or a line is malformed or
  /// has a piece outside the vocabulary; the message names the line.
  static Shortlist load(const ShortlistOptions& options, const Vocabulary& source,
                        const Vocabulary& target);

  /// The stored form: what load() computes, for the vocabularies of one model. Nothing is parsed or
  /// sorted when it is read. Layout: shortlist_file.cpp.
  std::string bytes(const Vocabulary& source, const Vocabulary& target) const;
  /// From bytes(); `name` is for messages. Errors (data): truncated, changed, or of other
  /// vocabularies.
  static Shortlist from_bytes(std::string_view bytes, const std::string& name,
                              const Vocabulary& source, const Vocabulary& target);

  /// The pieces that a source (ids without </s>) may be translated with, ascending; includes </s>,
  /// excludes <s> and <unk>.
  std::vector<std::int32_t> candidates(std::span<const std::int32_t> source) const;
  /// Number of translations of all source pieces.
  std::int64_t size() const { return static_cast<std::int64_t>(targets_.size()); }

 private:
  std::vector<std::int32_t> always_;  // the most frequent pieces and </s>
  std::vector<std::int64_t> begin_;   // [source vocabulary + 1] offsets into targets_
  std::vector<std::int32_t> targets_;
};

}  // namespace nmt
