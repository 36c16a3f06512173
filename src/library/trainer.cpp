#include "nmt/trainer.h"

#include "app/train/train.h"
#include "library/options.h"
#include "nn/unit_registry.h"

#include <atomic>
#include <thread>

namespace nmt {
namespace {

app::TrainingSpec spec_of(const TrainOptions& options) {
  app::TrainingSpec spec;
  config::Settings settings("nmt::train_model", "", "");
  settings.add(app::fields(spec)).checks_effects_itself();
  for (const char* name : {"unit", "enc-cell", "dec-cell"}) settings.allow(name, unit_names());
  library::read(library::members(options), library::members(TrainOptions{}), options.settings,
                settings);
  app::note_given(spec, settings);
  spec.typed = spec.given;
  return spec;
}

TrainProgress public_progress(const train::Figures& figures) {
  TrainProgress result;
  result.updates = figures.progress.updates;
  result.target_tokens = figures.progress.labels;
  result.epochs = figures.progress.epochs;
  result.loss = figures.loss;
  result.perplexity = figures.perplexity;
  result.learn_rate = figures.rate;
  result.target_tokens_per_second = figures.target_speed;
  result.seconds = figures.seconds;
  result.seconds_left = figures.seconds_left;
  return result;
}

Validation public_validation(const Progress& progress, const train::ValidationResult& measured,
                             bool best) {
  Validation result;
  result.updates = progress.updates;
  result.epochs = progress.epochs;
  for (const auto& metric : measured) result.metrics.emplace_back(metric.name, metric.value);
  result.best = best;
  return result;
}

}  // namespace

TrainResult train_model(const TrainOptions& options, const TrainCallbacks& callbacks) {
  app::TrainingSpec spec = spec_of(options);
  std::atomic<bool> stop{false};
  app::TrainingControl control;
  // Validations ask in all their threads, of which the caller is one.
  control.stop = [&, caller = std::this_thread::get_id()] {
    if (!stop && std::this_thread::get_id() == caller && callbacks.should_stop &&
        callbacks.should_stop())
      stop = true;
    return stop.load();
  };
  if (callbacks.on_progress)
    control.listener.on_display = [&](const train::Figures& figures) {
      if (!callbacks.on_progress(public_progress(figures))) stop = true;
    };
  if (callbacks.on_validation)
    control.listener.on_validation = [&](const Progress& progress,
                                         const train::ValidationResult& measured, bool best) {
      if (!callbacks.on_validation(public_validation(progress, measured, best))) stop = true;
    };
  app::Processes alone;
  app::PreparedTraining prepared(spec, alone);
  const app::TrainingResult ended = app::train(prepared, control);
  TrainResult result;
  result.finished = ended.status == ExitStatus::ok;
  result.updates = ended.progress.updates;
  result.best_metric = ended.best ? ended.best_metric : "";
  result.best = ended.best;
  result.best_update = ended.best_update;
  return result;
}

}  // namespace nmt
