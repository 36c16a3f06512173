#include "app/score/score.h"

#include "app/files/outputs.h"
#include "app/progress.h"
#include "app/score/text_scoring.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "model/directory/model_directory.h"
#include "search/batch_translator.h"
#include "search/score_stream.h"
#include "search/stream.h"

#include <fmt/ranges.h>

namespace nmt::app {
namespace {

const ScoreSpec& checked(const ScoreSpec& spec) {
  check(spec);
  return spec;
}

ScoreOutput format_of(const ScoreSpec& spec) {
  ScoreOutput format = spec.format;
  format.summary = spec.summary;
  format.alignment = spec.search.alignment != AlignmentKind::none;
  return format;
}

}  // namespace

OpenScorer::OpenScorer(const ScoreSpec& spec, const std::string& title,
                       std::shared_ptr<OpenModels> loaded)
    : models_(loaded ? std::move(loaded)
                     : std::make_shared<OpenModels>(title, checked(spec).models, spec.search,
                                                    spec.compute, spec.pieces_in)),
      scorer_(models_->inference.models.scorer(), models_->inference.models.source_vocabulary(),
              models_->inference.models.target_vocabulary(), options(checked(spec))) {}

PairScorerOptions OpenScorer::options(const ScoreSpec& spec) {
  const Cpu cpu = models_->inference.compute.cpu();
  return {cpu,
          search_options(spec.search, cpu).ranking,
          translator_options(spec.search, cpu).batching,
          spec.search.alignment,
          spec.pieces_in,
          [this](std::int64_t pairs) {
            if (on_batch_) on_batch_(pairs);
          },
          models_->workers.crew(),
          spec.attention,
          models_->inference.models.context_sentences()};
}

PairScorer::Totals score(const ScoreSpec& spec) {
  check(spec.models);
  if (scores_text(spec)) {
    score_text(spec);
    return {};
  }
  // A name that is no directory is the error, not what is missing for a translation model.
  if (const std::string& model = spec.models.models.front();
      !is_directory(model) &&
      (spec.files.size() != 2 || spec.context || spec.parts != ScoreSpec{}.parts))
    ModelDirectory::open(model);
  refuse_text_options(spec);
  if (spec.files.size() != 2)
    fail(ExitStatus::usage, "files to score: {}; expected two, source and target",
         spec.files.empty() ? "none" : fmt::format("{}", fmt::join(spec.files, ", ")));
  LineReader source_reader = LineReader::open(spec.files[0]),
             target_reader = LineReader::open(spec.files[1]);
  check_outputs({spec.files, spec.models.models}, {{"output", or_standard_stream(spec.output)}});
  LineWriter writer(spec.output);
  OpenScorer open(spec, "nmt-score");
  ReaderLines sources(source_reader), targets(target_reader);
  ProgressLine progress(spec.files[1]);
  std::int64_t done = 0;
  open.on_batch([&](std::int64_t pairs) {
    done += pairs;
    progress.show(targets.lines(), targets.bytes(), done);
  });
  score_stream(open.scorer(), sources, source_reader.name(), targets, target_reader.name(), writer,
               format_of(spec));
  writer.commit();
  source_reader.notes().warn(source_reader.name());
  target_reader.notes().warn(target_reader.name());
  const PairScorer::Totals totals = open.scorer().totals();
  if (totals.cropped > 1)
    log::warn("{} sides of pairs were longer than {} tokens and cropped (--max-length)",
              totals.cropped, spec.search.max_length);
  return totals;
}

}  // namespace nmt::app
