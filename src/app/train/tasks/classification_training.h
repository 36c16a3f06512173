#pragma once

#include "app/train/tasks/training_task.h"
#include "data/labeled_text.h"
#include "tasks/classification/classifier.h"
#include "tasks/classification/labeled_corpus.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Training of a classifier on a file of labeled texts or pairs (data/labeled_text.h).
class ClassificationTraining : public TrainingTask {
 public:
  std::vector<Default> defaults() const override;
  std::vector<std::string> idle_options() const override;
  NamedVocabularies named_vocabularies() const override { return NamedVocabularies::source; }
  void read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
            train::Communicator& ranks) override;
  void try_model(const TrainingSpec& spec) const override;
  TextIdentity text_identity() const override { return identity_; }
  std::string batching_hash(const TrainingSpec& spec) const override;
  std::string development_hash() const override { return development_hash_; }
  VocabularyPair make_vocabularies(const TrainingSpec& spec, train::Heartbeat& heartbeat) override;
  void make(const TrainingSpec& spec, const VocabularyPair& vocabularies, TrainingDevice& device,
            const train::StopRequest& stop) override;
  Trainable& model() override { return *classifier_; }
  train::BatchSource& source() override { return *batches_; }
  train::Validator& validator() override { return *validator_; }
  std::string summary(const TrainingSpec& spec) const override;
  void use_directory(const std::string&) override {}
  nlohmann::ordered_json record(const TrainingSpec& spec) override;
  std::string next_step(const std::string& directory) const override;

 private:
  void choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const;

  LabeledTexts texts_, development_;
  std::int64_t bytes_ = 0;  // of texts_
  TextIdentity identity_;   // that of 0.2.0 is without the held-out texts
  std::string development_hash_;
  VocabularyPair vocabularies_;
  LabeledCorpus corpus_;
  std::optional<Classifier> classifier_;
  std::optional<ClassificationBatches> batches_;
  std::unique_ptr<train::Validator> validator_;
};

}  // namespace nmt::app
