#pragma once

#include "core/rng.h"
#include "nmt/vocabulary.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace nmt {

/// Cuts text into varying pieces: byte-pair encoding that skips merges at random (BPE-dropout,
/// Provilkov, Emelianenko & Voita, ACL 2020, algorithm 1). Each step looks at all merges that the
/// pieces of a word allow, drops each with the same probability, and applies the best of the rest;
/// a word is done when none is left. With probability 0 the pieces are those of
/// Vocabulary::encode(), with 1 they are characters.
class BpeDropout {
 public:
  /// `probability` is in [0, 1]. Error (usage): the vocabulary is not a byte-pair encoding.
  BpeDropout(const Vocabulary& vocabulary, double probability);

  /// Other pieces of the same text. Pieces that are no result of merges (<unk>, bytes, symbols that
  /// the vocabulary's maker defined) stay. Words are cut where they reach 64 characters, so that
  /// the time is linear in the text.
  std::vector<std::int32_t> apply(const std::vector<std::int32_t>& ids, Rng& rng) const;

 private:
  struct Merge {
    std::int32_t id;
    float score;  ///< higher: earlier
  };
  /// `after` is room for the merges of neighbors.
  void merge(std::vector<std::int32_t>& word, std::vector<const Merge*>& after, Rng& rng) const;
  const Merge* find(std::int32_t left, std::int32_t right) const;

  float probability_;
  std::vector<std::vector<std::int32_t>> characters_;  ///< of each piece; empty: it stays
  std::vector<bool> starts_word_;
  std::unordered_map<std::uint64_t, Merge> merges_;  ///< of two pieces, by key()
};

}  // namespace nmt
