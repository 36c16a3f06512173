#include "app/train/train.h"

#include "app/compute/recurrence_log.h"
#include "app/train/run_record.h"
#include "app/train/training_vocabularies.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "train/parallel/shared.h"
#include "train/signals.h"
#include "train/trainer.h"

#include <algorithm>

namespace nmt::app {
namespace {

VocabularyPair open_vocabularies(PreparedTraining& p) {
  VocabularyPair vocabularies;
  if (p.device.is_rank_0())
    vocabularies =
        p.before ? p.directory.vocabularies() : p.task->make_vocabularies(p.spec, p.heartbeat);
  if (p.device.has_several_ranks()) broadcast(p.device.ranks(), vocabularies);
  return vocabularies;
}

void log_model(TrainingTask& task, const TrainingSpec& spec) {
  Trainable& model = task.model();
  log::info("model: {}, {} weights", task.summary(spec), grouped(model.parameters().elements()));
  log_recurrences(model.context(), model.parameters());
}

void require_same_on_all_ranks(const PreparedTraining& p) {
  train::Communicator& ranks = p.device.ranks();
  if (!p.device.has_several_ranks()) return;
  // Those that were given are equal already; these may be chosen by each rank.
  require_same(ranks, yaml_of_all_ranks(p.spec), "the settings differ");
  // `auto` is resolved on each rank.
  require_same(ranks, std::string(name_of(p.device.compute().precision())),
               "the precisions differ: set --precision");
  require_same(ranks, p.batching_hash, "the training text or its batches differ");
  require_same(ranks, p.task->development_hash(), "the development set differs");
}

// A text without usable examples is an error before a directory is made, or --no-reload removes the
// old model.
void try_first_batch(train::BatchSource& source) {
  const std::string start = source.position();
  source.next();
  source.restore(start);
}

// Called after all checks; from here on, the model directory is written.
void open_directory(PreparedTraining& p, const VocabularyPair& vocabularies) {
  if (p.device.is_rank_0()) {
    if (p.before)
      p.directory.resume();
    else
      p.directory.create(p.spec.model, p.spec.train, vocabularies,
                         p.task->model().parameters().elements());
  }
  p.device.ranks().barrier();
  if (p.device.is_rank_0()) p.task->use_directory(p.directory.path());
}

// `over`: of Trainer::finished_on_all_ranks().
std::string how_to_extend(const std::string& over) {
  if (over.ends_with("(max-minutes)")) return "give a larger max-minutes";
  if (over.ends_with("(early-stopping)"))
    return "extend it (after=+10e: ten more epochs; or a larger early-stopping)";
  return "extend it (after=+10e: ten more epochs)";
}

// Returns false if the training has already finished.
bool resume(train::Trainer& trainer, train::Reporter& reporter, const std::string& model,
            const std::string& start_anew) {
  if (!trainer.resume()) return true;
  const Progress& progress = trainer.state().progress;
  const std::string over = trainer.finished_on_all_ranks();
  if (over.empty()) {
    reporter.event("resume", progress,
                   fmt::format("{}: resuming at update {}, epoch {:.2f}", model,
                               grouped(progress.updates), progress.epochs));
    return true;
  }
  log::info("{}: the training has already finished ({}); {}, or {}", model, over,
            how_to_extend(over), start_anew);
  return false;
}

void record_run(train::Reporter& reporter, const Progress& progress, PreparedTraining& p,
                const std::vector<std::string>& command) {
  auto record =
      run_record(command, yaml_of(p.spec), p.device.compute().pool(), p.task->record(p.spec));
  record["processes"] = p.device.ranks().size();
  record["precision"] = name_of(p.device.compute().precision());
  reporter.record("run", progress, record);
}

// Records how many pairs each rank has encoded.
void record_encoded(train::Reporter& reporter, const Progress& progress, train::Communicator& ranks,
                    std::int64_t by_this_rank) {
  if (ranks.size() == 1 || by_this_rank < 0) return;
  std::vector<double> encoded(static_cast<std::size_t>(ranks.size()));
  encoded[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(by_this_rank);
  ranks.all_reduce_sum(encoded.data(), ranks.size());
  reporter.record("encoded", progress,
                  {{"pairs", std::vector<std::int64_t>(encoded.begin(), encoded.end())}});
}

void log_end(const TrainingResult& result, const TrainSpec& spec, const TrainingTask& task) {
  if (result.status != ExitStatus::ok) {
    log::info("stopped at update {}; run the same training{} to resume",
              grouped(result.progress.updates), spec.overwrite ? " without no-reload" : "");
    return;
  }
  if (result.best)
    log::info("best {}: {:#.4g} at update {}", result.best_metric, *result.best,
              grouped(result.best_update));
  log::info("{}", task.next_step(spec.model));
}

TrainingResult result_of(ExitStatus status, const train::TrainingState& state) {
  return {status, state.progress, state.best_metric, state.best, state.best_update};
}

}  // namespace

TrainingResult train(PreparedTraining& p, const TrainingControl& control) {
  const train::StopRequest stop(control.stop);
  const VocabularyPair vocabularies = open_vocabularies(p);
  p.heartbeat.activity("making the model");
  TrainingTask& task = *p.task;
  task.make(p.spec, vocabularies, p.device, stop);
  log_model(task, p.spec);
  require_same_on_all_ranks(p);
  if (!p.before) try_first_batch(task.source());
  open_directory(p, vocabularies);

  train::Reporter reporter(p.device.is_rank_0() ? p.directory.path() + "/train.jsonl" : "",
                           control.listener);
  train::SharedValidator shared(p.device.ranks(), &task.validator());
  train::Validator& validator = p.device.has_several_ranks() ? shared : task.validator();
  train::Trainer trainer(p.spec.train, {.model = task.model(),
                                        .source = task.source(),
                                        .validator = &validator,
                                        .store = p.directory.store(),
                                        .reporter = reporter,
                                        .heartbeat = p.heartbeat,
                                        .batching_hash = p.batching_hash,
                                        .development = task.development_hash(),
                                        .settings = yaml_of(p.spec),
                                        .started = control.started,
                                        .communicator = p.device.ranks(),
                                        .stop = stop,
                                        .alignments = task.alignments_identity().current,
                                        .relative_after = p.relative_after,
                                        .extends = p.extends,
                                        .changed_metric_options = p.changed_metric_options,
                                        .text = task.text_identity()});
  if (!resume(trainer, reporter, p.directory.path(), p.spec.start_anew))
    return result_of(ExitStatus::ok, trainer.state());
  record_run(reporter, trainer.state().progress, p, control.command);
  std::optional<train::Signals> signals;
  if (control.catch_signals) signals.emplace();
  const TrainingResult result = result_of(trainer.run(), trainer.state());
  record_encoded(reporter, result.progress, p.device.ranks(), task.encoded());
  if (p.device.compute().cuda()) log::info("{}", p.device.memory_used());
  log_end(result, p.spec.train, task);
  return result;
}

}  // namespace nmt::app
