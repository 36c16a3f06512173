#pragma once

#include "app/train/tasks/tagging_validator.h"
#include "app/train/tasks/training_task.h"
#include "data/columns.h"
#include "tasks/tagging/tagged_corpus.h"
#include "tasks/tagging/tagger.h"
#include "tasks/tagging/word_forms.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Training of a tagger on a file of columns (data/columns.h).
class TaggingTraining : public TrainingTask {
 public:
  std::vector<Default> defaults() const override;
  std::vector<std::string> idle_options() const override;
  void read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
            train::Communicator& ranks) override;
  void try_model(const TrainingSpec& spec) const override;
  TextIdentity text_identity() const override { return identity_; }
  std::string batching_hash(const TrainingSpec& spec) const override;
  std::string development_hash() const override { return development_hash_; }
  VocabularyPair make_vocabularies(const TrainingSpec& spec, train::Heartbeat& heartbeat) override;
  void make(const TrainingSpec& spec, const VocabularyPair& vocabularies, TrainingDevice& device,
            const train::StopRequest& stop) override;
  Trainable& model() override { return *tagger_; }
  train::BatchSource& source() override { return *batches_; }
  train::Validator& validator() override { return *validator_; }
  std::string summary(const TrainingSpec& spec) const override;
  void use_directory(const std::string&) override {}
  nlohmann::ordered_json record(const TrainingSpec& spec) override;
  std::string next_step(const std::string& directory) const override;

 private:
  void drop_long_sentences(const DataSpec& data);
  void choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const;

  std::vector<TaggedSentence> sentences_, development_;
  std::int64_t words_ = 0;             // of sentences_
  bool leaves_out_sentences_ = false;  // longer ones than max-length
  // That of 0.2.0 is without the sentences that are held out or that max-length leaves out.
  TextIdentity identity_;
  std::string development_hash_;
  VocabularyPair vocabularies_;
  std::optional<WordForms> forms_;
  TaggedCorpus corpus_;
  std::optional<Tagger> tagger_;
  std::optional<TaggingBatches> batches_;
  std::optional<TaggingValidator> validator_;
};

}  // namespace nmt::app
