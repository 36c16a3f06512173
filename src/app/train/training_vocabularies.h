#pragma once

#include "app/train/training_text.h"
#include "config/specs.h"
#include "model/directory/model_directory.h"
#include "train/heartbeat.h"
#include "train/parallel/communicator.h"

namespace nmt::app {

/// Reads data.vocabs, or trains what they stand for on the training lines.
VocabularyPair make_vocabularies(const DataSpec& data, const TrainingText& text,
                                 train::Heartbeat& heartbeat);

/// Gives all ranks the first one's vocabularies.
void broadcast(train::Communicator& ranks, VocabularyPair& vocabularies);

}  // namespace nmt::app
