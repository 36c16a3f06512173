#include "app/train/train.h"

#include "app/train/corpus_source.h"
#include "app/train/run_record.h"
#include "app/train/training_vocabularies.h"
#include "app/train/validation.h"
#include "core/log.h"
#include "data/training_data.h"
#include "model/model.h"
#include "train/parallel/shared.h"
#include "train/signals.h"
#include "train/trainer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

VocabularyPair open_vocabularies(PreparedTraining& p) {
  VocabularyPair vocabularies;
  if (p.device.is_first())
    vocabularies =
        p.before ? p.directory.vocabularies() : make_vocabularies(p.spec.data, p.text, p.heartbeat);
  if (p.device.are_several()) broadcast(p.device.ranks(), vocabularies);
  return vocabularies;
}

// The objects of the training loop that PreparedTraining does not have.
class Parts {
 public:
  Parts(PreparedTraining& p, const VocabularyPair& vocabularies, train::StopRequest stop)
      : model(p.spec.model, vocabularies.source->size(), vocabularies.target->size(),
              p.device.context(), p.spec.train.seed),
        data(*p.text.corpus, *vocabularies.source, *vocabularies.target, p.spec.data,
             p.text.excluded, {p.device.ranks().rank(), p.device.ranks().size()},
             [&ranks = p.device.ranks()](const Ids& mine) { return ranks.all_gather(mine); }),
        source(data, p.spec.data),
        translations(p.spec.model, p.spec.train.valid_metrics, p.spec.train.valid_max_sentences,
                     p.spec.search, *vocabularies.source, *vocabularies.target, p.text.development,
                     p.device.compute()),
        shared_(p.device.ranks(), &translations),
        are_several_(p.device.are_several()) {
    translations.stop_on(std::move(stop));
  }
  train::Validator& validator() {
    if (are_several_) return shared_;
    return translations;
  }

  Model model;
  TrainingData data;
  CorpusSource source;
  TranslationValidator translations;

 private:
  train::SharedValidator shared_;
  bool are_several_;
};

void log_model(Model& model, const ModelSpec& spec) {
  log::info("model: {}, {} and {}, {} weights", name_of(spec.type), spec.enc_cell, spec.dec_cell,
            grouped(model.parameters().elements()));
  tell_recurrences(model);
}

// The settings that must be equal on all ranks.
std::string common_settings(const TrainingSpec& spec) {
  TrainingSpec copy = spec;
  config::Settings settings("nmt-train", "", "");
  settings.add(fields(copy));
  return settings.yaml_of_all_ranks();
}

void require_same_on_all_ranks(const PreparedTraining& p) {
  train::Communicator& ranks = p.device.ranks();
  if (!p.device.are_several()) return;
  require_same(ranks, common_settings(p.spec), "the settings differ");
  require_same(ranks, p.batching, "the training text or its batches differ");
  require_same(ranks, p.text.development_hash(), "the development set differs");
}

// Called after all checks; from here on, the model directory is written.
void open_directory(PreparedTraining& p, const VocabularyPair& vocabularies, Parts& parts) {
  if (p.device.is_first()) {
    if (p.before)
      p.directory.go_on();
    else
      p.directory.create(p.spec.model, p.spec.train, vocabularies,
                         parts.model.parameters().elements());
  }
  p.device.ranks().barrier();
  if (p.device.is_first())
    parts.translations.keep_translations(p.directory.path() + "/development.json");
}

// Returns false if the training has already finished.
bool resume(train::Trainer& trainer, train::Reporter& reporter, const std::string& model) {
  if (!trainer.resume()) return true;
  const Progress& progress = trainer.state().progress;
  const std::string over = trainer.finished();
  if (over.empty()) {
    reporter.event("resume", progress,
                   fmt::format("{}: resuming at update {}, epoch {:.2f}", model,
                               grouped(progress.updates), progress.epochs));
    return true;
  }
  log::info(
      "{}: the training has already finished ({}); extend it (--after +10e: ten more epochs), "
      "or replace it with --no-reload",
      model, over);
  return false;
}

void record_run(train::Reporter& reporter, const Progress& progress, PreparedTraining& p,
                const VocabularyPair& vocabularies, Parts& parts,
                const std::vector<std::string>& command) {
  auto record = run_record(command, yaml_of(p.spec), p.device.compute().pool(), p.text, p.spec.data,
                           *vocabularies.source, *vocabularies.target, parts.model);
  record["processes"] = p.device.ranks().size();
  reporter.record("run", progress, record);
}

// Records how many pairs each rank has encoded.
void record_encoded(train::Reporter& reporter, const Progress& progress, train::Communicator& ranks,
                    const TrainingData& data) {
  if (ranks.size() == 1) return;
  std::vector<double> encoded(static_cast<std::size_t>(ranks.size()));
  encoded[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(data.encoded());
  ranks.all_reduce_sum(encoded.data(), ranks.size());
  reporter.record("encoded", progress,
                  {{"pairs", std::vector<std::int64_t>(encoded.begin(), encoded.end())}});
}

void log_end(const TrainingResult& result, const TrainSpec& spec) {
  if (result.status != ExitStatus::ok) {
    log::info("stopped at update {}; run the same command{} to resume",
              grouped(result.progress.updates), spec.overwrite ? " without --no-reload" : "");
    return;
  }
  if (result.best)
    log::info("best {}: {:.4g} at update {}", result.best_metric, *result.best,
              grouped(result.best_update));
  log::info("translate with: nmt-translate -m {} < INPUT > OUTPUT", spec.model);
}

TrainingResult result_of(ExitStatus status, const train::TrainingState& state) {
  return {status, state.progress, state.best_metric, state.best, state.best_update};
}

}  // namespace

TrainingResult train(PreparedTraining& p, const TrainingControl& control) {
  const train::StopRequest stop(control.stop);
  const VocabularyPair vocabularies = open_vocabularies(p);
  p.heartbeat.activity("making the model");
  Parts parts(p, vocabularies, stop);
  log_model(parts.model, p.spec.model);
  train::Trainer::check(p.spec.train);
  require_same_on_all_ranks(p);
  open_directory(p, vocabularies, parts);

  train::Reporter reporter(p.device.is_first() ? p.directory.path() + "/train.jsonl" : "",
                           control.listener);
  train::Trainer trainer(
      p.spec.train, {parts.model, parts.source, &parts.validator(), p.directory.store(), reporter,
                     p.heartbeat, p.batching, p.text.development_hash(), yaml_of(p.spec),
                     control.started, p.device.ranks(), stop});
  if (!resume(trainer, reporter, p.directory.path()))
    return result_of(ExitStatus::ok, trainer.state());
  record_run(reporter, trainer.state().progress, p, vocabularies, parts, control.command);
  std::optional<train::Signals> signals;
  if (control.catch_signals) signals.emplace();
  const TrainingResult result = result_of(trainer.run(), trainer.state());
  record_encoded(reporter, result.progress, p.device.ranks(), parts.data);
  if (p.device.compute().cuda()) log::info("{}", p.device.memory_used());
  log_end(result, p.spec.train);
  return result;
}

}  // namespace nmt::app
