// nmt-train SOURCE TARGET: trains a translation model on two parallel files.

#include "app/compute.h"
#include "app/job.h"
#include "app/program.h"
#include "app/train/corpus_source.h"
#include "app/train/directory_store.h"
#include "app/train/run_record.h"
#include "app/train/train_settings.h"
#include "app/train/training_text.h"
#include "app/train/validation.h"
#include "config/period.h"
#include "core/file.h"
#include "core/log.h"
#include "train/autoconfig.h"
#include "train/optimization/optimizer.h"
#include "train/parallel/shared.h"
#include "train/signals.h"
#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

using Clock = std::chrono::steady_clock;

// What decides which batches come: a position in others means nothing.
std::string batching_of(const DataSpec& data, const TrainingText& text) {
  return fmt::format(
      "{} without {} of {}; seed {}, max-length {}{}, mini-batch {}, mini-batch-words {}, "
      "maxi-batch {}",
      text.corpus->hash(), text.excluded.size(), text.corpus->pairs(), data.seed, data.max_length,
      data.max_length_crop ? " cropped" : "", data.mini_batch, data.mini_batch_words,
      data.maxi_batch);
}

// Whether the files hold the vocabularies of the model directory.
bool has_vocabularies(const DirectoryStore& directory, const std::vector<std::string>& files) {
  const VocabularyPair there = directory.vocabularies();
  return read_file(files.front()) == there.source->bytes() &&
         read_file(files.back()) == there.target->bytes();
}

// Rank 0's, which has read or trained them.
void share(train::Communicator& ranks, VocabularyPair& vocabularies) {
  if (ranks.size() == 1) return;
  const bool first = ranks.rank() == 0;
  std::string source = first ? vocabularies.source->bytes() : "",
              target = first && vocabularies.target != vocabularies.source
                           ? vocabularies.target->bytes()
                           : "";
  ranks.barrier();
  broadcast(ranks, source);
  broadcast(ranks, target);
  if (first) return;
  const auto read = [](const std::string& bytes) {
    return std::make_shared<const Vocabulary>(Vocabulary::from_bytes(bytes, "rank 0's vocabulary"));
  };
  vocabularies.source = read(source);
  vocabularies.target = target.empty() ? vocabularies.source : read(target);
}

// The weights, what the optimizer keeps of each and, beside an average, the weights being trained.
std::int64_t checkpoint_bytes(const TrainSpec& spec, std::int64_t weights) {
  return static_cast<std::int64_t>(sizeof(float)) * weights *
         (1 + train::Optimizer::states(spec) + (spec.exponential_smoothing > 0 ? 1 : 0));
}

// Saves by save-freq and, of the best, by valid-freq, one at the start and one at the end; no bound
// where --after counts in another unit.
double max_checkpoints(const TrainSpec& spec) {
  constexpr double no_bound = std::numeric_limits<double>::infinity();
  double most = no_bound;
  for (const Period& whole : parse_periods(spec.after, "after")) {
    double saves = 2;
    for (const auto& [text, name] :
         {std::pair{&spec.save_freq, "save-freq"}, {&spec.valid_freq, "valid-freq"}})
      if (const Period every = parse_period(*text, name))
        saves += every.unit == whole.unit ? std::ceil(whole.count / every.count) : no_bound;
    most = std::min(most, saves);
  }
  return most;
}

// The settings that all ranks must have alike.
std::string common(const std::string& yaml) {
  std::string text;
  for (std::size_t begin = 0; begin < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', begin), yaml.size() - 1) + 1;
    const std::string line = yaml.substr(begin, end - begin);
    if (!line.starts_with("device:") && !line.starts_with("cpu-threads:")) text += line;
    begin = end;
  }
  return text;
}

ExitStatus train(TrainSettings& settings, const std::vector<std::string>& command,
                 Clock::time_point started, Job& job) {
  ModelSpec& model_spec = settings.model;
  DataSpec& data = settings.data;
  TrainSpec& spec = settings.train;
  settings.check();
  train::Communicator& hosts = job.join();
  const bool first = hosts.rank() == 0, several = hosts.size() > 1;
  hosts.wait_at_most(settings.compute.rank_timeout);
  train::Heartbeat heartbeat("reading the training text");
  ComputeSpec where = settings.compute;
  where.device = job.device(where.device);
  where.cpu_threads = job.threads(where.cpu_threads);
  Compute compute(where);
  compute.check_training();
  log::info("{}{}; seed {}", compute.describe("nmt-train"),
            several ? fmt::format(", one of {} processes", hosts.size()) : "", spec.seed);
  const std::unique_ptr<Arena> arena = compute.new_training_arena();
  Context context = compute.context(*arena);
  context.cpu.products = compute.products();
  settings.warn_of_idle();
  const std::unique_ptr<train::Communicator> gpus =
      several && context.cuda.device ? train::over_nccl(hosts, *context.cuda.device) : nullptr;
  train::Communicator& ranks = gpus ? *gpus : hosts;

  // What is there already? Its choices hold. On several ranks the first alone looks at the model
  // directory and writes there.
  std::optional<DirectoryStore> directory;
  if (first) directory.emplace(spec.model, spec.keep_last, spec.keep_best, spec.overwrite);
  train::SharedStore shared_store(ranks, directory ? &*directory : nullptr);
  train::CheckpointStore& store =
      several ? static_cast<train::CheckpointStore&>(shared_store) : *directory;
  std::optional<train::TrainingState> before;
  if (const auto newest = store.newest())
    before = train::TrainingState::from_json(*newest, spec.model);
  if (before) {
    std::vector<train::ChangedSetting> changes = settings.take_over(before->settings);
    // The same vocabularies may have another name. On several ranks the first looks for all.
    std::erase_if(changes, [&](const auto& change) {
      return change.name == "vocabs" && (!first || has_vocabularies(*directory, data.vocabs));
    });
    train::announce_changes(changes, spec, data);
  }

  std::vector<train::Choice> choices;
  const TrainingText text = open_training_text(data, choices, ranks);
  for (train::Choice& choice : train::choose(text.size(), model_spec, data, spec))
    choices.push_back(std::move(choice));
  if (!before && !settings.ties_by_hand() && train::choose_tying(model_spec, data))
    choices.push_back({"tied-embeddings-all", "true", "one vocabulary for both sides"});
  settings.check();
  const std::string batching = batching_of(data, text);
  Progress done = before ? before->progress : Progress{};
  if (before && before->corpus != batching) done.epochs = 0;  // as Trainer counts them there
  const std::string after = std::exchange(spec.after, absolute_periods(spec.after, done, "after"));
  if (after != spec.after) log::info("after: {} is {} here", after, spec.after);
  if (before && data.valid_sets.empty() && !before->corpus.starts_with(text.corpus->hash()))
    log::warn(
        "the development set is held out from other text than before: if that had some of the same "
        "pairs, they have been trained on; name another with "
        "--valid-sets");
  for (const train::Choice& choice : choices)
    log::info("{}: {} (chosen: {})", choice.name, choice.value, choice.why);
  if (dump_if_asked(settings.settings)) return ExitStatus::ok;

  VocabularyPair vocabularies;
  if (first)
    vocabularies = before ? directory->vocabularies() : make_vocabularies(data, text, heartbeat);
  share(ranks, vocabularies);
  heartbeat.activity("making the model");
  Model model(model_spec, vocabularies.source->size(), vocabularies.target->size(), context,
              spec.seed);
  log::info("model: {}, {} and {}, {} weights", name_of(model_spec.type), model_spec.enc_cell,
            model_spec.dec_cell, train::grouped(model.parameters().elements()));
  tell_recurrences(model);
  TrainingData training_data(*text.corpus, *vocabularies.source, *vocabularies.target, data,
                             text.excluded, {ranks.rank(), ranks.size()},
                             [&ranks](const Ids& mine) { return ranks.all_gather(mine); });
  CorpusSource source(training_data, data.max_length);
  TranslationValidator translations(model_spec, spec.valid_metrics, spec.valid_max_sentences,
                                    settings.search, *vocabularies.source, *vocabularies.target,
                                    text.development, compute);
  train::SharedValidator shared_validator(ranks, &translations);
  train::Validator& validator =
      several ? static_cast<train::Validator&>(shared_validator) : translations;
  train::Trainer::check(spec);
  if (several) {
    require_same(ranks, common(settings.settings.yaml()), "the settings differ");
    require_same(ranks, batching, "the training text or its batches differ");
    require_same(ranks, text.development_hash(), "the development set differs");
  }

  // All is checked: from here on the model directory is written.
  if (first && before) directory->go_on();
  if (first && !before)
    directory->create(model_spec, vocabularies,
                      checkpoint_bytes(spec, model.parameters().elements()), max_checkpoints(spec));
  ranks.barrier();
  if (first) translations.keep_translations(spec.model + "/development.json");
  train::Reporter reporter(first ? spec.model + "/train.jsonl" : "");
  train::Trainer trainer(spec, {model, source, &validator, store, reporter, heartbeat, batching,
                                text.development_hash(), settings.settings.yaml(), started, ranks});
  if (trainer.resume()) {
    const auto& progress = trainer.state().progress;
    const std::string over = trainer.finished();
    if (!over.empty()) {
      log::info(
          "{}: the training is already over, at {}; set more to go on (--after +10e: ten epochs "
          "more), or start anew with --no-reload",
          spec.model, over);
      return ExitStatus::ok;
    }
    reporter.event("resume", progress,
                   fmt::format("{}: going on from update {}, epoch {:.2f}", spec.model,
                               train::grouped(progress.updates), progress.epochs));
  }
  auto record = run_record(command, settings.settings.yaml(), compute.pool(), text, data,
                           *vocabularies.source, *vocabularies.target, model);
  record["processes"] = ranks.size();
  reporter.record("run", trainer.state().progress, record);
  const train::Signals signals;
  const ExitStatus status = trainer.run();
  if (several) {
    std::vector<double> encoded(static_cast<std::size_t>(ranks.size()));
    encoded[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(training_data.encoded());
    ranks.all_reduce_sum(encoded.data(), ranks.size());
    reporter.record("encoded", trainer.state().progress,
                    {{"pairs", std::vector<std::int64_t>(encoded.begin(), encoded.end())}});
  }
  if (compute.cuda()) log::info("{}", compute.memory_used(*arena));
  if (status != ExitStatus::ok) {
    log::info("left on a signal at update {}; the same command{} goes on",
              train::grouped(trainer.state().progress.updates),
              spec.overwrite ? " without --no-reload" : "");
    return status;
  }
  if (trainer.state().best)
    log::info("best {}: {:.4g} at update {}", trainer.state().best_metric, *trainer.state().best,
              train::grouped(trainer.state().best_update));
  log::info("translate with: nmt-translate -m {} < INPUT > OUTPUT", spec.model);
  return status;
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  const auto started = std::chrono::steady_clock::now();
  nmt::app::Job job;
  nmt::app::TrainSettings settings;
  const int status = nmt::app::run_tool(
      argc, argv, settings.settings,
      [&] {
        return nmt::app::train(settings, {argv, argv + argc}, started, job);
      },
      [&] { job.on_error(); });
  return job.end(status);
}
