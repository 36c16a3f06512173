#include "app/distill/parts.h"
#include "app/distill/similarity.h"
#include "app/distill/steps/steps.h"
#include "app/score/score.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/number_text.h"
#include "search/line_writer.h"

#include <optional>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

Selection selection(const DistillSpec& spec) {
  return spec.selection.value_or(spec.student.data.train_sets.size() == 2 ? Selection::bleu
                                                                          : Selection::score);
}

Json settings(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  const Selection by = selection(spec);
  return {{"select", std::string(name_of(by))},
          {"reference",
           by == Selection::score ? "none" : text_identity(spec.student.data.train_sets[1])},
          {"backward", spec.backward.empty() ? "none" : identity(spec.backward)}};
}

// Length-normalized log p of the source given the target, </s> included.
void score(OpenScorer& backward, const std::vector<std::string>& sources, std::int64_t first_line,
           std::vector<SelectedLine>& lines) {
  std::vector<std::string> targets;
  for (const SelectedLine& line : lines) targets.push_back(line.target);
  const std::vector<PairScore> scores = backward.scorer().score(targets, sources, first_line);
  for (std::size_t i = 0; i < lines.size(); ++i)
    lines[i].backward = scores[i].log_prob /
                        static_cast<float>(std::max<std::size_t>(scores[i].word_scores.size(), 1));
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  const DistillSpec& spec = all.spec;
  const Selection by = selection(spec);
  TextParts source(spec.student.data.train_sets[0], spec.part_lines);
  std::optional<TextParts> reference;
  if (by != Selection::score) reference.emplace(spec.student.data.train_sets[1], spec.part_lines);
  std::optional<OpenScorer> backward;  // for the first part that is missing
  std::vector<std::string> sources, references;
  while (source.next(sources)) {
    if (reference) reference->next(references);
    const std::string path = all.work.part(DistillStep::select, source.number());
    if (is_file(path)) continue;
    std::vector<std::vector<std::string>> lists =
        read_n_best(all.work.part(DistillStep::translate, source.number()), source.first_line(),
                    sources.size());
    std::vector<SelectedLine> lines(sources.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      lines[i].target =
          std::move(lists[i][reference ? closest(lists[i], references[i], by) : std::size_t{0}]);
    if (!spec.backward.empty()) {
      if (!backward) {
        ScoreSpec scoring;
        scoring.models.models = {spec.backward};
        scoring.compute.device = spec.student.compute.device;
        scoring.compute.cpu_threads = spec.student.compute.cpu_threads;
        backward.emplace(scoring, "nmt-distill: the backward model");
      }
      score(*backward, sources, source.first_line() + 1, lines);
    }
    begin();
    make_directories(all.work.at("select"));
    LineWriter writer(path);
    for (const SelectedLine& line : lines) writer.write(format_selected(line));
    writer.commit();
    log::info("select: {} lines", grouped(source.lines()));
  }
  begin();
  result = {{"lines", source.lines()},
            {"by", std::string(name_of(by))},
            {"backward", !spec.backward.empty()}};
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  return fmt::format("{} lines, chosen by {}{}", grouped(result.at("lines").get<std::int64_t>()),
                     result.at("by").get<std::string>(),
                     result.at("backward").get<bool>() ? ", scored by the backward model" : "");
}

}  // namespace

const Step select_step{DistillStep::select, settings, run, summary, "lines"};

}  // namespace nmt::app
