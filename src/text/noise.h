#pragma once

#include "config/option.h"
#include "core/error.h"
#include "core/rng.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// The noise of a training: shares of pairs, and BPE-dropout (text/vocabulary/bpe_dropout.h); -1:
/// chosen.
struct NoiseSpec {
  double upper = -1;        ///< upper case, both sides
  double title = -1;        ///< title case, both sides
  double typos = -1;        ///< typos, source side
  double punctuation = -1;  ///< no final punctuation, both sides
  double bpe_dropout = -1;  ///< probability that a merge is skipped, both sides
};

namespace config {

std::vector<Option> fields(NoiseSpec& spec);
/// Error (usage): the shares of upper and title case exceed 1.
void check(const NoiseSpec& spec);

}  // namespace config

/// Noise that makes a model robust against the letter case, the typos and the missing punctuation
/// of its users' texts. For each pair and epoch it draws independently:
/// - upper or title case, on both sides;
/// - typos, on the source side (add_typos());
/// - no final punctuation: where both sides end with a mark such as a period, neither does.
/// The draws depend only on the seed, the epoch and the line. The kinds and their usual rates are
/// those of the Firefox Translations student models (github.com/mozilla/translations).
class TextNoise {
 public:
  /// Rates up to 0 switch a kind off.
  explicit TextNoise(const NoiseSpec& rates = {}, std::uint64_t seed = 1)
      : rates_(rates), seed_(seed) {}

  /// Whether any kind is on.
  bool any() const;
  /// Changes a pair of valid UTF-8 lines; returns whether it changed any.
  bool apply(std::string& source, std::string& target, std::int64_t epoch, std::int64_t line) const;
  /// Changes one side of a pair as apply() does, but for typos.
  bool apply_case(std::string& text, std::int64_t epoch, std::int64_t line) const;

 private:
  struct Draw {
    Rng rng;
    bool upper = false, title = false, typos = false, punctuation = false;
  };
  Draw draw(std::int64_t epoch, std::int64_t line) const;

  NoiseSpec rates_;
  std::uint64_t seed_;
};

/// One typo in a word drawn at random, and in each other word with probability 0.1: two letters
/// swapped, a letter dropped, doubled, replaced by a neighbor on the keyboard, or such a neighbor
/// inserted. Words between spaces with fewer than three letters, or with digits or symbols, have
/// none. Returns whether the line has another word.
bool add_typos(std::u32string& line, Rng& rng);

/// The line without the sentence-final marks (. ! ? ... and those of other scripts) and white space
/// at its end; the same line if nothing else is left.
std::u32string without_final_punctuation(std::u32string line);

}  // namespace nmt
