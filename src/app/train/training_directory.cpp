#include "app/train/training_directory.h"

#include "config/period.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace nmt::app {
namespace {

// Bytes of a checkpoint: weights, optimizer state and, with a moving average, the trained weights.
std::int64_t checkpoint_bytes(const TrainSpec& spec, std::int64_t weights) {
  return static_cast<std::int64_t>(sizeof(float)) * weights *
         (1 + train::Optimizer::states(spec) + (train::Optimizer::has_average(spec) ? 1 : 0));
}

// Upper bound of the number of saved checkpoints: by save-freq, by valid-freq for the best, one at
// the start and one at the end. No bound if --after has another unit.
double max_checkpoints(const TrainSpec& spec) {
  constexpr double no_bound = std::numeric_limits<double>::infinity();
  double max_saves = no_bound;
  for (const Period& whole : parse_periods(spec.after, "after")) {
    double saves = 2;
    for (const auto& [text, name] :
         {std::pair{&spec.save_freq, "save-freq"}, {&spec.valid_freq, "valid-freq"}})
      if (const Period every = parse_period(*text, name))
        saves += every.unit == whole.unit ? std::ceil(whole.count / every.count) : no_bound;
    max_saves = std::min(max_saves, saves);
  }
  return max_saves;
}

}  // namespace

TrainingDirectory::TrainingDirectory(const TrainSpec& spec, const std::string& start_anew,
                                     train::Communicator& ranks)
    : path_(spec.model),
      ranks_(ranks),
      own_(ranks.rank() == 0
               ? std::make_optional<DirectoryStore>(spec.model, spec.keep_last, spec.keep_best,
                                                    spec.overwrite, start_anew)
               : std::nullopt),
      shared_(ranks, own_ ? &*own_ : nullptr) {}

train::CheckpointStore& TrainingDirectory::store() {
  if (ranks_.size() > 1) return shared_;
  return *own_;
}

std::optional<train::TrainingState> TrainingDirectory::training_so_far() {
  const std::optional<std::string> newest = store().newest();
  if (!newest) return std::nullopt;
  return train::TrainingState::from_json(*newest, path_);
}

void TrainingDirectory::create(const ModelSpec& model, const TrainSpec& spec,
                               const VocabularyPair& vocabularies, std::int64_t weights) {
  own_->create(model, vocabularies, checkpoint_bytes(spec, weights), max_checkpoints(spec));
}

}  // namespace nmt::app
