#pragma once

#include "app/train/tasks/perplexity_validator.h"
#include "app/train/tasks/training_task.h"
#include "data/corpus.h"
#include "tasks/language_model/language_model.h"
#include "tasks/language_model/token_stream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Training of a language model on one text file, one sentence per line.
class LanguageModelTraining : public TrainingTask {
 public:
  std::vector<Default> defaults() const override;
  std::vector<std::string> idle_options() const override;
  void read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
            train::Communicator& ranks) override;
  void try_model(const TrainingSpec& spec) const override;
  TextIdentity text_identity() const override { return text_->identity(); }
  std::string batching_hash(const TrainingSpec& spec) const override;
  std::string development_hash() const override;
  VocabularyPair make_vocabularies(const TrainingSpec& spec, train::Heartbeat& heartbeat) override;
  void make(const TrainingSpec& spec, const VocabularyPair& vocabularies, TrainingDevice& device,
            const train::StopRequest& stop) override;
  Trainable& model() override { return *model_; }
  train::BatchSource& source() override { return *stream_; }
  train::Validator& validator() override { return *validator_; }
  std::string summary(const TrainingSpec& spec) const override;
  void use_directory(const std::string&) override {}
  nlohmann::ordered_json record(const TrainingSpec& spec) override;
  std::string next_step(const std::string& directory) const override;

 private:
  void read_texts(TrainingSpec& spec, std::vector<train::Choice>& choices);
  void hold_out(TrainingSpec& spec, std::vector<train::Choice>& choices);

  std::optional<TextFile> text_;
  std::int64_t lines_ = 0;                ///< of the training text, without the held-out ones
  std::vector<std::string> development_;  // lines
  std::optional<LanguageModel> model_;
  std::optional<TokenStream> stream_;
  std::optional<PerplexityValidator> validator_;
  int vocabulary_size_ = 0;
};

}  // namespace nmt::app
