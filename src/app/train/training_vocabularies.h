#pragma once

#include "app/train/training_text.h"
#include "config/specs.h"
#include "model/directory/model_directory.h"
#include "train/heartbeat.h"
#include "train/parallel/communicator.h"

namespace nmt::app {

/// Reads data.vocabs, or learns vocabularies from the training lines if none are given.
VocabularyPair make_vocabularies(const DataSpec& data, const NoiseSpec& noise,
                                 const TrainingText& text, train::Heartbeat& heartbeat);

/// Sends the first rank's vocabularies to all ranks.
void broadcast(train::Communicator& ranks, VocabularyPair& vocabularies);

}  // namespace nmt::app
