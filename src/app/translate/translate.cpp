#include "app/translate/translate.h"

#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "app/files/stored_shortlist.h"
#include "app/progress.h"
#include "core/log.h"
#include "core/number_text.h"
#include "model/directory/model_directory.h"
#include "search/stream.h"

#include <algorithm>

namespace nmt::app {
namespace {

const TranslateSpec& checked(const TranslateSpec& spec) {
  check(spec);
  return spec;
}

void log_summary(const TranslateSpec& spec, const TranslateResult& result,
                 const ProgressLine& progress) {
  const BatchTranslator::Statistics& statistics = result.statistics;
  if (statistics.cropped > 1)
    log::warn("{} lines were longer than {} tokens and cropped (--max-length)", statistics.cropped,
              spec.search.max_length);
  if (statistics.repeating > 1 && !spec.text_rules.repetition_guard)
    log::warn("the translations of {} lines repeat a phrase {} or more times in a row",
              statistics.repeating, min_reported_repetitions);
  if (const std::int64_t parts = result.in_parts; parts > 0)
    log::info("{} {} translated around preserved spans and terms", counted(parts, "line"),
              parts == 1 ? "was" : "were");
  if (result.replaced + result.cut > 0)
    log::info("repetitions: {} replaced by another hypothesis, {} cut", result.replaced,
              result.cut);
  const double seconds = progress.seconds();
  log::info(
      "{} in {:.2f} s ({:.3f} s of CPU time): {:.1f} sentences/s, {:.0f} source and "
      "{:.0f} target tokens/s",
      counted(result.lines, "line"), seconds, progress.processor_seconds(),
      static_cast<double>(statistics.sentences) / seconds,
      static_cast<double>(statistics.source_tokens) / seconds,
      static_cast<double>(statistics.target_tokens) / seconds);
}

}  // namespace

OpenTranslator::OpenTranslator(const TranslateSpec& spec, const std::string& title,
                               std::shared_ptr<OpenModels> loaded)
    : wants_lists_(checked(spec).search.n_best),
      rules_(TextRules::load(spec.text_rules)),
      models_(loaded ? std::move(loaded)
                     : std::make_shared<OpenModels>(title, spec.models, spec.search, spec.compute,
                                                    spec.pieces_in)) {
  LoadedEnsemble& models = models_->inference.models;
  BatchTranslatorOptions options =
      translator_options(spec.search, models_->inference.compute.cpu());
  options.pieces_in = spec.pieces_in;
  options.context_sentences = models.context_sentences();
  options.pieces_out = spec.pieces_out;
  options.warn_repetitions = !rules_.repetition_guard;
  options.attention = spec.attention;
  options.crew = models_->workers.crew();
  options.on_batch = [this](std::int64_t sentences) {
    if (on_batch_) on_batch_(sentences);
  };
  load_shortlist(spec);
  if (shortlist_) options.search.shortlist = shortlist_.get();
  options.search.all_finished = rules_.repetition_guard;
  open(whole_, models.scorer(), options);
  options.crew = {};
  options.on_batch = nullptr;
  for (const Worker& worker : models_->workers.crew().workers) {
    options.search.cpu = worker.cpu;
    open(lanes_.emplace_back(), *worker.scorer, options);
  }
}

// The one that is asked for, or else that of the model.
void OpenTranslator::load_shortlist(const TranslateSpec& spec) {
  const LoadedEnsemble& models = models_->inference.models;
  const Vocabulary &source = models.source_vocabulary(), &target = models.target_vocabulary();
  if (const auto options = ShortlistOptions::parse(spec.search.shortlist)) {
    if (models_->inference.compute.cuda())
      fail(ExitStatus::usage, "shortlist: is supported on the CPU only");
    shortlist_ = std::make_shared<Shortlist>(Shortlist::load(*options, source, target));
    log::info("shortlist {}: {} translations of source pieces", options->path, shortlist_->size());
  } else if (spec.search.shortlist.empty() && spec.models.models.size() == 1) {
    std::call_once(models_->shortlist_loaded, [&] {
      const ModelDirectory directory = ModelDirectory::open(spec.models.models.front());
      if (models_->inference.compute.cuda()) {
        if (!directory.shortlist().empty())
          log::info("{} is for the CPU, and not used on a GPU", directory.shortlist_path());
      } else if (auto stored = stored_shortlist(directory, source, target)) {
        models_->shortlist = std::make_shared<Shortlist>(*std::move(stored));
      }
    });
    shortlist_ = models_->shortlist;
  }
}

void OpenTranslator::open(Lane& lane, StepScorer& scorer, BatchTranslatorOptions options) {
  const Vocabulary& source = models_->inference.models.source_vocabulary();
  const Vocabulary& target = models_->inference.models.target_vocabulary();
  options.search.n_best = false;
  lane.plain.emplace(scorer, source, target, options);
  options.search.n_best = true;
  lane.n_best.emplace(scorer, source, target, options);
  options.alignment = AlignmentKind::word;
  lane.aligned.emplace(scorer, source, target, options);
  lane.best = &*lane.plain;
  lane.lists = &*lane.n_best;
  lane.aligned_lists = &*lane.aligned;
  if (!rules_.any()) return;
  lane.ruled_plain.emplace(*lane.plain, source, target, rules_, text_statistics_);
  TextTranslator* const best = &*lane.ruled_plain;
  lane.ruled_n_best.emplace(*lane.n_best, source, target, rules_, text_statistics_, best);
  lane.ruled_aligned.emplace(*lane.aligned, source, target, rules_, text_statistics_, best);
  lane.best = &*lane.ruled_plain;
  lane.lists = &*lane.ruled_n_best;
  lane.aligned_lists = &*lane.ruled_aligned;
}

void OpenTranslator::trim(int lane) {
  constexpr std::size_t spare = 1 << 20;
  Arena& arena = lanes_.empty() ? *models_->inference.arena : models_->workers.arena(lane);
  const Arena::Statistics& memory = arena.statistics();
  if (memory.reserved > memory.peak + memory.peak / 4 + spare) arena.trim();
}

TranslateResult translate(const TranslateSpec& spec) {
  check(spec.models);
  std::vector<std::string> read{spec.text_rules.glossary};
  if (const auto shortlist = ShortlistOptions::parse(spec.search.shortlist))
    read.push_back(shortlist->path);
  if (spec.text.empty()) read.push_back(spec.input.empty() ? "-" : spec.input);
  expect_one_standard_input(read);
  LineInput input(spec.input, spec.text);
  JobInputs inputs = inputs_of(spec);
  if (spec.text.empty()) inputs.files.push_back(or_standard_stream(spec.input));
  check_outputs(inputs, {{"output", or_standard_stream(spec.output)}});
  LineWriter writer(spec.output);
  OpenTranslator open(spec, "nmt-translate");
  ProgressLine progress(spec.input);
  std::int64_t done = 0;
  open.on_batch([&](std::int64_t sentences) {
    done += sentences;
    if (input.is_file()) progress.show(input.lines(), input.bytes(), done);
  });
  TranslateResult result;
  result.lines = translate_stream(open.translator(), input, writer, !input.is_file());
  result.statistics = open.statistics();
  const TextTranslator::Statistics& text = open.text_statistics();
  result.in_parts = text.in_parts;
  result.replaced = text.replaced;
  result.cut = text.cut;
  writer.commit();
  input.warn();
  log_summary(spec, result, progress);
  Inference& inference = open.inference();
  if (inference.compute.cuda()) log::info("{}", inference.compute.memory_used(*inference.arena));
  return result;
}

}  // namespace nmt::app
