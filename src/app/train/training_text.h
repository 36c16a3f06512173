#pragma once

#include "app/train/validation.h"
#include "config/specs.h"
#include "data/alignment/alignments.h"
#include "data/corpus.h"
#include "data/hold_out.h"
#include "train/autoconfig.h"
#include "train/parallel/communicator.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt::app {

/// All text of a training: the corpus, the lines excluded from training, and the development set.
struct TrainingText {
  std::unique_ptr<ParallelCorpus> corpus;
  std::unique_ptr<Alignments> alignments;  ///< of guided alignment; null: none
  std::vector<std::int64_t> excluded;      ///< lines from 0, sorted
  DevelopmentSet development;

  train::CorpusSize size() const;
  std::string development_hash() const;
};

/// Opens and checks the files. If no development set is given, holds one out and logs it. Chosen
/// values are added to `choices`. `context_sentences`: as ModelSpec; a held-out pair has the
/// context that it has in the corpus. With several ranks, only the first reads the whole text, for
/// warnings and the held-out set. Errors: as ParallelCorpus; (usage): not two train-sets, or a
/// rank's files differ from the first rank's.
TrainingText open_training_text(DataSpec& data, int context_sentences,
                                std::vector<train::Choice>& choices,
                                train::Communicator& ranks = train::alone());

/// Opens the alignments of the corpus, which the first rank checks as a whole. Errors: as
/// Alignments and Alignments::check(); (usage): a rank's file differs from the first rank's.
std::unique_ptr<Alignments> open_alignments(const std::string& path, const ParallelCorpus& corpus,
                                            train::Communicator& ranks = train::alone());

}  // namespace nmt::app
