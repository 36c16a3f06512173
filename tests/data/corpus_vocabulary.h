#pragma once

#include "data/corpus.h"
#include "text/vocabulary/train_vocabulary.h"

#include <cstdint>
#include <string>

namespace nmt {

/// A vocabulary of `size` pieces of both sides of a corpus.
inline Vocabulary corpus_vocabulary(const ParallelCorpus& corpus, int size) {
  std::string storage;
  const auto line = [&](std::int64_t i) {
    return corpus.line(i % 2 ? Side::source : Side::target, i / 2, storage);
  };
  return train_vocabulary(2 * corpus.pairs(), line, {.size = size}, "test").vocabulary;
}

}  // namespace nmt
