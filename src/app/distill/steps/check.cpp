#include "app/distill/measurement.h"
#include "app/distill/similarity.h"
#include "app/distill/steps/steps.h"
#include "core/files/file.h"
#include "core/threads/thread_pool.h"
#include "kernels/instruction_set.h"
#include "search/beam/shortlist.h"
#include "text/lines.h"

#include <cmath>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string>& test_sets(const DistillSpec& spec) {
  return spec.test_sets.empty() ? spec.student.data.valid_sets : spec.test_sets;
}

Json settings(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  return {{"source", text_identity(test_sets(spec)[0])},
          {"reference", text_identity(test_sets(spec)[1])},
          {"teacher", identities(spec.teachers)},
          {"student", identity(all.work.student())},
          {"search", search_settings(spec.student.search)},
          {"shortlist", spec.shortlist},
          {"check-sentences", spec.check_sentences}};
}

// The teacher as nmt-translate runs it by default, and the student in three ways.
std::vector<Candidate> candidates(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  TranslateSpec teacher, student;
  teacher.models.models = spec.teachers;
  student.search = spec.student.search;
  const auto named = [](const std::string& name, const TranslateSpec& how) {
    return Candidate{fmt::format("{}, beam {}", name, how.search.beam_size), how};
  };
  std::vector<Candidate> list{named(
      spec.teachers.size() == 1 ? "teacher" : fmt::format("{} teachers", spec.teachers.size()),
      teacher)};
  student.models.models = {all.work.student()};
  list.push_back(named("student, float32", student));
  student.models.models = {all.work.converted()};
  student.search.shortlist = {std::string(ShortlistOptions::off)};
  list.push_back(named("student, int8", student));
  student.search.shortlist = {};  // that of the directory
  list.push_back(named("student, int8, shortlist", student));
  return list;
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  const std::vector<std::string>& files = test_sets(all.spec);
  const std::vector<std::string> sources = read_lines(files[0]), references = read_lines(files[1]);
  std::vector<Measurement> rows;
  for (const Candidate& candidate : candidates(all)) {
    rows.push_back(measure(candidate, sources, all.spec.check_sentences));
    rows.back().bleu = text_bleu(rows.back().outputs, references);
  }
  begin();
  const std::string title =
      fmt::format("{} sentences of {}; {}, {}, one thread, seconds of CPU time", sources.size(),
                  files[0], processor(), kernels::instruction_set());
  write_file(all.work.at("table.txt"), table_text(rows, title));
  const Json table{{"test-set", files[0]},
                   {"sentences", sources.size()},
                   {"processor", processor()},
                   {"instruction-set", kernels::instruction_set()},
                   {"models", table_json(rows)}};
  write_file(all.work.at("table.json"), dump_json(table, 2) + "\n");
  result = {{"loss", rows.front().bleu - rows.back().bleu},
            {"speed", rows.back().words / rows.front().words}};
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  const double loss = result.at("loss").get<double>();
  return fmt::format("the student {} {:.2f} BLEU and is {:.1f} times as fast as the teacher",
                     loss < 0 ? "gains" : "loses", std::abs(loss),
                     result.at("speed").get<double>());
}

}  // namespace

const Step check_step{DistillStep::check, settings, run, summary};

}  // namespace nmt::app
