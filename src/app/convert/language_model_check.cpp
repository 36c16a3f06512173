#include "app/compute/compute.h"
#include "app/convert/convert_check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "model/directory/stored_weights.h"
#include "tasks/language_model/loaded_language_model.h"
#include "tasks/language_model/text_score.h"
#include "text/lines.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace nmt::app {
namespace {

std::vector<std::string> lines_of(const ConvertSpec& spec) {
  if (spec.check.size() != 1)
    fail(ExitStatus::usage, "check: {} given; a language model needs --check TEXT, or --no-check",
         counted(std::ssize(spec.check), "file"));
  LineReader reader = LineReader::open(spec.check[0]);
  std::vector<std::string> lines;
  for (std::string line;
       lines.size() < static_cast<std::size_t>(spec.check_sentences) && reader.next(line);)
    if (!is_blank(line)) lines.push_back(line);
  reader.notes().warn(spec.check[0]);
  if (lines.empty()) fail(ExitStatus::data, "check: {} has no line with text", spec.check[0]);
  return lines;
}

std::vector<LineScore> scores_with(Dtype weights, const ConvertSpec& spec,
                                   const std::vector<std::string>& lines) {
  ComputeSpec compute_spec = spec.compute;
  compute_spec.precision = parse_enum<Precision>(precision_name(weights), "precision");
  Compute compute(compute_spec);
  const std::unique_ptr<Arena> arena = compute.new_arena();
  LoadedLanguageModel loaded(spec.model, compute.context(*arena));
  return score_lines(loaded.model(), loaded.vocabulary(), lines, {});
}

}  // namespace

nlohmann::ordered_json check_language_model(const ConvertSpec& spec, Dtype to) {
  const std::vector<std::string> lines = lines_of(spec);
  const std::vector<LineScore> scores = scores_with(Dtype::f32, spec, lines);
  const std::vector<LineScore> converted = scores_with(to, spec, lines);
  const double before = perplexity(scores), after = perplexity(converted),
               rise = 100 * std::expm1(entropy_per_word(converted) - entropy_per_word(scores));
  if (std::none_of(scores.begin(), scores.end(), [](const LineScore& s) { return s.words > 0; }))
    fail(ExitStatus::data, "check: {} has no line with text for this vocabulary", spec.check[0]);
  const std::string found =
      fmt::format("perplexity {:.2f} in float32, {:.2f} in {} ({:+.2f} %), over {} lines of {}",
                  before, after, name_of(spec.precision), rise, lines.size(), spec.check[0]);
  if (!(rise <= spec.tolerance))
    fail(ExitStatus::failed,
         "{}: the perplexity rises too much in {}: {}; the limit is {} % (--tolerance); nothing "
         "was written",
         spec.model, name_of(spec.precision), found, spec.tolerance);
  log::info("{}", found);
  return {{"lines", lines.size()}, {"perplexity-float32", before}, {"perplexity", after}};
}

}  // namespace nmt::app
