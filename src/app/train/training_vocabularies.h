#pragma once

#include "app/train/training_text.h"
#include "config/specs.h"
#include "model/directory/model_directory.h"
#include "train/heartbeat.h"
#include "train/parallel/communicator.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Reads data.vocabs, or learns vocabularies from the training lines if none are given.
VocabularyPair make_vocabularies(const DataSpec& data, const NoiseSpec& noise,
                                 const TrainingText& text, train::Heartbeat& heartbeat);

/// The vocabularies that --vocabs names: those of both sides, or the source's alone.
enum class NamedVocabularies { both_sides, source };
/// Whether these files of --vocabs contain the vocabularies of a model.
bool contain_vocabularies(const std::vector<std::string>& files, const VocabularyPair& model,
                          NamedVocabularies named = NamedVocabularies::both_sides);

/// Sends the first rank's vocabularies to all ranks.
void broadcast(train::Communicator& ranks, VocabularyPair& vocabularies);

}  // namespace nmt::app
