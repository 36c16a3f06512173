#pragma once

#include "app/train/training_device.h"
#include "app/train/training_spec.h"
#include "app/train/training_vocabularies.h"
#include "data/text_identity.h"
#include "model/directory/model_directory.h"
#include "model/trainable.h"
#include "train/autoconfig.h"
#include "train/batch_source.h"
#include "train/heartbeat.h"
#include "train/parallel/communicator.h"
#include "train/stop_request.h"
#include "train/validator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// The part of nmt-train that depends on the task: it reads the text, completes the settings, and
/// makes model, batches and validation. The members are called in their order here, but
/// idle_options() also after read(); docs/design/adding-a-task.md describes an example.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  /// A default that differs from that of the translation task.
  struct Default {
    std::string option;
    std::vector<std::string> value;
  };
  virtual std::vector<Default> defaults() const { return {}; }
  /// Options that determine nothing in this task; they are reported if they are given, and may
  /// change when a training resumes.
  virtual std::vector<std::string> idle_options() const { return {}; }
  /// The vocabularies that --vocabs names, unless it is idle.
  virtual NamedVocabularies named_vocabularies() const { return NamedVocabularies::both_sides; }
  /// Opens and checks the text, and replaces unset values in the spec; what was chosen is added to
  /// `choices`. `is_new`: no training is resumed. Errors: (usage) settings that the task does not
  /// support; (data) text without content.
  virtual void read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
                    train::Communicator& ranks) = 0;
  /// Makes the model without weights, for vocabularies of any_vocabulary, so that settings that its
  /// layers refuse are told before a vocabulary is trained. Errors: those of the model.
  virtual void try_model(const TrainingSpec& spec) const = 0;
  static constexpr int any_vocabulary = 8;
  /// Of the training text; batching_hash() begins with the current hash.
  virtual TextIdentity text_identity() const = 0;
  /// What determines the batches: a position in a corpus is valid only if it is unchanged.
  virtual std::string batching_hash(const TrainingSpec& spec) const = 0;
  virtual std::string development_hash() const = 0;
  /// Of the links of guided alignment.
  virtual TextIdentity alignments_identity() const { return {}; }

  /// The vocabularies of a new training; a resumed one reads them from its directory. Called on the
  /// first rank only.
  virtual VocabularyPair make_vocabularies(const TrainingSpec& spec,
                                           train::Heartbeat& heartbeat) = 0;
  /// Makes model, batches and validator. The vocabularies outlive the task.
  virtual void make(const TrainingSpec& spec, const VocabularyPair& vocabularies,
                    TrainingDevice& device, const train::StopRequest& stop) = 0;
  virtual Trainable& model() = 0;
  virtual train::BatchSource& source() = 0;
  virtual train::Validator& validator() = 0;  ///< used on the first rank
  /// The model in a few words, for the log, such as its units.
  virtual std::string summary(const TrainingSpec& spec) const = 0;
  /// Called when the model directory may be written, on the first rank.
  virtual void use_directory(const std::string& path) = 0;
  /// The members "data" and "lengths" of the run record (run_record.h).
  virtual nlohmann::ordered_json record(const TrainingSpec& spec) = 0;
  /// Pairs or sentences that this rank has encoded; -1: not counted.
  virtual std::int64_t encoded() const { return -1; }
  /// What to do with the model: "translate with: nmt-translate -m DIR < INPUT > OUTPUT".
  virtual std::string next_step(const std::string& directory) const = 0;
};

/// The implementation for the task. This table is the only place of nmt-train that tells tasks
/// apart.
std::unique_ptr<TrainingTask> make_training_task(Task task);

}  // namespace nmt::app
