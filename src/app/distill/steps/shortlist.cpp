#include "app/distill/parts.h"
#include "app/distill/steps/steps.h"
#include "app/score/score.h"
#include "config/device.h"
#include "core/log.h"
#include "core/number_text.h"
#include "search/beam/lexical_table.h"

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kept = 200;            // translations per source piece
constexpr std::size_t longest = 200;         // pieces; longer pairs align badly
constexpr std::int64_t max_pairs = 1000000;  // from the beginning of the text

Json settings(const Distillation& all) {
  return {{"student", identity(all.work.student())}};
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  ScoreSpec spec;
  spec.models.models = {all.work.student()};
  spec.search.alignment = AlignmentKind::subword;
  spec.compute.device = all.spec.student.compute.device;
  spec.compute.cpu_threads = all.spec.student.compute.cpu_threads;
  // As the student translates later, and about four times as fast as in float32.
  if (parse_device(spec.compute.device, "--device").kind == DeviceChoice::Kind::cpu)
    spec.compute.precision = Precision::int8;
  const auto models = std::make_shared<OpenModels>("nmt-distill: the student aligns", spec.models,
                                                   spec.search, spec.compute, false);
  OpenScorer open(spec, "", models);
  const Vocabulary& source_vocabulary = models->inference.models.source_vocabulary();
  const Vocabulary& target_vocabulary = models->inference.models.target_vocabulary();
  LexicalTable table(source_vocabulary, target_vocabulary);
  begin();
  LineWriter writer(all.work.shortlist());
  const auto window = static_cast<std::int64_t>(open.scorer().window());
  TextParts sources(all.work.source(), window), targets(all.work.target(), window);
  std::int64_t used = 0;
  std::vector<std::string> source_lines, target_lines;
  while (used < max_pairs && sources.next(source_lines) && targets.next(target_lines)) {
    const std::vector<PairScore> scores =
        open.scorer().score(source_lines, target_lines, sources.first_line() + 1);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const auto from = source_vocabulary.encode(source_lines[i]),
                 to = target_vocabulary.encode(target_lines[i]);
      if (from.empty() || to.empty() || std::max(from.size(), to.size()) > longest) continue;
      table.add(from, to, scores[i].alignment);
      ++used;
    }
    log::info("shortlist: {} pairs", grouped(used));
  }
  const std::int64_t translations = table.write(writer, kept);
  writer.commit();
  result = {{"pairs", used}, {"translations", translations}};
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  return fmt::format("{} translations of source pieces, from {} pairs",
                     grouped(result.at("translations").get<std::int64_t>()),
                     grouped(result.at("pairs").get<std::int64_t>()));
}

}  // namespace

const Step shortlist_step{DistillStep::shortlist, settings, run, summary};

}  // namespace nmt::app
