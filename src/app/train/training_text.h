#pragma once

#include "app/train/validation.h"
#include "config/specs.h"
#include "data/corpus.h"
#include "data/hold_out.h"
#include "train/autoconfig.h"
#include "train/parallel/communicator.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt::app {

/// All text of a training: the corpus, the lines of it that take no part, and the development set.
struct TrainingText {
  std::unique_ptr<ParallelCorpus> corpus;
  std::vector<std::int64_t> excluded;  ///< lines from 0, sorted
  DevelopmentSet development;

  train::CorpusSize size() const;
  std::string development_hash() const;
};

/// Opens and checks the files; holds a development set out where none is given, and says so.
/// `choices` gets what was chosen. Of several ranks the first alone reads the text whole, for
/// warnings and the hold-out. Errors: as ParallelCorpus; usage when there are no two train-sets, or
/// a rank's are others than the first's.
TrainingText open_training_text(DataSpec& data, std::vector<train::Choice>& choices,
                                train::Communicator& ranks = train::alone());

}  // namespace nmt::app
