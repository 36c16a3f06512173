#include "app/distill/parts.h"
#include "app/distill/steps/steps.h"
#include "app/score/score.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/number_text.h"
#include "search/line_writer.h"

#include <algorithm>
#include <optional>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

Json settings(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  return {{"teacher", identities(spec.teachers)},
          {"teacher-precision",
           spec.teacher_precision ? std::string(name_of(*spec.teacher_precision)) : "auto"},
          {"part-lines", spec.part_lines}};
}

// Forced decoding of the distilled pairs by the teachers: each target word is linked to the source
// word with the largest attention.
ScoreSpec teacher(const DistillSpec& spec) {
  ScoreSpec scoring;
  scoring.models.models = spec.teachers;
  scoring.search.alignment = AlignmentKind::word;
  scoring.compute.device = spec.student.compute.device;
  scoring.compute.cpu_threads = spec.student.compute.cpu_threads;
  scoring.compute.precision = spec.teacher_precision;
  return scoring;
}

void join_parts(const WorkDirectory& work, std::int64_t part_lines, std::int64_t lines) {
  LineWriter writer(work.links());
  for (std::int64_t i = 0; i * part_lines < lines; ++i)
    writer.write(
        read_links(work.part(DistillStep::align, i), std::min(part_lines, lines - i * part_lines)));
  writer.commit();
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  TextParts sources(all.work.source(), all.spec.part_lines),
      targets(all.work.target(), all.spec.part_lines);
  std::optional<OpenScorer> open;  // for the first part that is missing
  std::vector<std::string> source_lines, target_lines;
  while (sources.next(source_lines) && targets.next(target_lines)) {
    const std::string path = all.work.part(DistillStep::align, sources.number());
    if (is_file(path)) continue;
    if (!open) {
      open.emplace(teacher(all.spec), "nmt-distill: the teacher aligns");
      begin();
      make_directories(all.work.at("align"));
    }
    LineWriter writer(path);
    for (const PairScore& score :
         open->scorer().score(source_lines, target_lines, sources.first_line() + 1))
      writer.write(pharaoh(score.alignment) + "\n");
    writer.commit();
    log::info("align: {} pairs", grouped(sources.lines()));
  }
  begin();
  join_parts(all.work, all.spec.part_lines, sources.lines());
  result = {{"pairs", sources.lines()}, {"parts", sources.number() + 1}};
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  return fmt::format("{} pairs in {} parts", grouped(result.at("pairs").get<std::int64_t>()),
                     result.at("parts").get<std::int64_t>());
}

bool is_off(const DistillSpec& spec) {
  return !spec.aligns();
}

}  // namespace

const Step align_step{DistillStep::align, settings, run, summary, "pairs", is_off};

}  // namespace nmt::app
