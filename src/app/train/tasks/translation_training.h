#pragma once

#include "app/train/corpus_source.h"
#include "app/train/tasks/training_task.h"
#include "app/train/training_text.h"
#include "app/train/validation.h"
#include "data/training_data.h"
#include "model/model.h"

#include <optional>

namespace nmt::app {

/// Replaces the settings of a translation model that are not set, by the size of its training text.
/// `is_new` and `choices`: as TrainingTask::read. Errors (usage): settings that contradict guided
/// alignment; BPE-dropout of words.
void choose_settings(TrainingSpec& spec, bool is_new, const train::CorpusSize& size,
                     std::vector<train::Choice>& choices);

/// Training of a translation model on two parallel files.
class TranslationTraining : public TrainingTask {
 public:
  void read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
            train::Communicator& ranks) override;
  void try_model(const TrainingSpec& spec) const override;
  TextIdentity text_identity() const override { return text_.corpus->identity(); }
  std::string batching_hash(const TrainingSpec& spec) const override;
  std::string development_hash() const override { return text_.development_hash(); }
  TextIdentity alignments_identity() const override {
    return text_.alignments ? text_.alignments->identity() : TextIdentity{};
  }
  VocabularyPair make_vocabularies(const TrainingSpec& spec, train::Heartbeat& heartbeat) override;
  void make(const TrainingSpec& spec, const VocabularyPair& vocabularies, TrainingDevice& device,
            const train::StopRequest& stop) override;
  Trainable& model() override { return *model_; }
  train::BatchSource& source() override { return *source_; }
  train::Validator& validator() override { return *translations_; }
  std::string summary(const TrainingSpec& spec) const override;
  void use_directory(const std::string& path) override;
  nlohmann::ordered_json record(const TrainingSpec& spec) override;
  std::int64_t encoded() const override { return data_->encoded(); }
  std::string next_step(const std::string& directory) const override;

 private:
  TrainingText text_;
  VocabularyPair vocabularies_;
  std::optional<Model> model_;
  std::optional<TrainingData> data_;
  std::optional<CorpusSource> source_;
  std::optional<TranslationValidator> translations_;
};

}  // namespace nmt::app
