#include "app/convert/convert.h"

#include "app/distill/steps/steps.h"
#include "core/files/file.h"

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

Json settings(const Distillation& all) {
  const std::vector<std::string>& texts = all.spec.student.data.valid_sets;
  return {{"student", identity(all.work.student())},
          {"source", text_identity(texts[0])},
          {"reference", text_identity(texts[1])},
          {"search", search_settings(all.spec.student.search)},
          {"shortlist", all.spec.shortlist},
          {"tolerance", all.spec.tolerance}};
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  ConvertSpec spec;
  spec.model = all.work.student();
  spec.output = all.work.converted();
  spec.check = all.spec.student.data.valid_sets;
  spec.check_sentences = 1000;
  spec.tolerance = all.spec.tolerance;
  spec.search = all.spec.student.search;
  spec.search.shortlist = {all.work.shortlist(), std::to_string(all.spec.shortlist[0]),
                           std::to_string(all.spec.shortlist[1])};
  spec.compute.cpu_threads = all.spec.student.compute.cpu_threads;
  begin();
  convert(spec);
  result = Json::object();
  return ExitStatus::ok;
}

std::string summary(const Json&) {
  return "int8 weights and the shortlist";
}

}  // namespace

const Step convert_step{DistillStep::convert, settings, run, summary};

}  // namespace nmt::app
