#include "app/translate/translate.h"

#include "app/distill/parts.h"
#include "app/distill/steps/steps.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/number_text.h"
#include "search/line_writer.h"

#include <chrono>
#include <optional>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

TranslateSpec teacher(const DistillSpec& spec) {
  TranslateSpec teacher;
  teacher.models.models = spec.teachers;
  teacher.search.beam_size = spec.teacher_beam;
  teacher.search.length_penalty = spec.teacher_length_penalty;
  teacher.search.n_best = true;
  teacher.compute.device = spec.student.compute.device;
  teacher.compute.cpu_threads = spec.student.compute.cpu_threads;
  teacher.compute.precision = spec.teacher_precision;
  return teacher;
}

Json settings(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  return {{"source", text_identity(spec.student.data.train_sets[0])},
          {"teacher", identities(spec.teachers)},
          {"teacher-beam-size", spec.teacher_beam},
          {"teacher-length-penalty", spec.teacher_length_penalty},
          {"teacher-precision",
           spec.teacher_precision ? std::string(name_of(*spec.teacher_precision)) : "auto"},
          {"part-lines", spec.part_lines}};
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  TextParts source(all.spec.student.data.train_sets[0], all.spec.part_lines);
  std::optional<OpenTranslator> open;  // for the first part that is missing
  const auto start = std::chrono::steady_clock::now();
  std::int64_t translated = 0;
  for (std::vector<std::string> lines; source.next(lines);) {
    const std::string path = all.work.part(DistillStep::translate, source.number());
    if (is_file(path)) continue;
    if (!open) {
      open.emplace(teacher(all.spec), "nmt-distill: the teacher");
      begin();
      make_directories(all.work.at("translate"));
    }
    LineTranslator& translator = open->translator();
    LineWriter writer(path);
    std::int64_t id = source.first_line();
    for (const LineTranslation& translation : translator.translate(lines, id + 1))
      writer.write(format_translation(translation, id++, translator.options()));
    writer.commit();
    translated += std::ssize(lines);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    log::info("translate: {} lines, {:.1f} lines/s", grouped(id),
              static_cast<double>(translated) / seconds);
  }
  begin();
  source.warn();
  result = {{"lines", source.lines()}, {"parts", source.number() + 1}};
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  return fmt::format("{} lines in {} parts", grouped(result.at("lines").get<std::int64_t>()),
                     result.at("parts").get<std::int64_t>());
}

}  // namespace

const Step translate_step{DistillStep::translate, settings, run, summary, "lines"};

}  // namespace nmt::app
