#include "app/distill/pair_filter.h"
#include "app/distill/parts.h"
#include "app/distill/similarity.h"
#include "app/distill/steps/steps.h"
#include "core/number_text.h"
#include "search/line_writer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

struct Kept {
  std::int64_t line;
  float backward;
};
using Scored = std::pair<double, std::size_t>;  // number in a list of lines

Selection measure_of(const DistillSpec& spec) {
  return spec.selection == Selection::chrf ? Selection::chrf : Selection::bleu;
}

Json settings(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  Json settings = {{"max-ratio", spec.max_ratio},
                   {"backward-drop", spec.backward.empty() ? 0.0 : spec.backward_drop}};
  if (spec.overlap_drop > 0) {
    settings["overlap-drop"] = spec.overlap_drop;
    settings["overlap"] = std::string(name_of(measure_of(spec)));
    settings["reference"] = text_identity(spec.student.data.train_sets[1]);
  }
  return settings;
}

void for_each_pair(const Distillation& all,
                   const std::function<void(std::int64_t line, const std::string& source,
                                            const SelectedLine& selected)>& use) {
  TextParts source(all.spec.student.data.train_sets[0], all.spec.part_lines);
  for (std::vector<std::string> sources; source.next(sources);) {
    const std::vector<SelectedLine> selected =
        read_selected(all.work.part(DistillStep::select, source.number()), sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i)
      use(source.first_line() + static_cast<std::int64_t>(i), sources[i], selected[i]);
  }
}

// Similarity of the lines' translations and references, in the order of the lines.
std::vector<double> overlaps(const Distillation& all, const std::vector<Kept>& lines) {
  const DistillSpec& spec = all.spec;
  TextParts reference(spec.student.data.train_sets[1], spec.part_lines);
  std::vector<std::string> references;
  std::vector<double> overlaps;
  for_each_pair(all, [&](std::int64_t line, const std::string&, const SelectedLine& each) {
    const std::int64_t in_part = line % spec.part_lines;
    if (in_part == 0) reference.next(references);
    if (overlaps.size() == lines.size() || lines[overlaps.size()].line != line) return;
    overlaps.push_back(
        similarity(each.target, references[static_cast<std::size_t>(in_part)], measure_of(spec)));
  });
  return overlaps;
}

// Drops the share of the lines with the lowest scores; of equal scores, the earlier ones. Returns
// their number.
std::int64_t drop_lowest(double share, std::vector<Scored> scores, std::vector<Kept>& lines) {
  const auto count = static_cast<std::ptrdiff_t>(share * static_cast<double>(lines.size()));
  std::sort(scores.begin(), scores.end());
  scores.erase(scores.begin(), scores.begin() + count);
  std::vector<Kept> left;
  for (const Scored& scored : scores) left.push_back(lines[scored.second]);
  std::sort(left.begin(), left.end(), [](const Kept& a, const Kept& b) { return a.line < b.line; });
  lines = std::move(left);
  return count;
}

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  PairFilter filter(all.spec.max_ratio);
  std::array<std::int64_t, EnumNames<Verdict>::names.size()> counts{};
  std::vector<Kept> kept;
  std::int64_t pairs = 0;
  for_each_pair(all, [&](std::int64_t line, const std::string& source, const SelectedLine& each) {
    const Verdict verdict = filter.judge(source, each.target);
    ++counts[static_cast<std::size_t>(verdict)];
    ++pairs;
    if (verdict == Verdict::kept) kept.push_back({line, each.backward});
  });
  std::int64_t backward = 0, overlap = 0;
  std::vector<Scored> scores;
  if (!all.spec.backward.empty()) {
    for (const Kept& each : kept) scores.emplace_back(each.backward, scores.size());
    backward = drop_lowest(all.spec.backward_drop, std::move(scores), kept);
  }
  if (all.spec.overlap_drop > 0) {
    scores.clear();
    for (const double each : overlaps(all, kept)) scores.emplace_back(each, scores.size());
    overlap = drop_lowest(all.spec.overlap_drop, std::move(scores), kept);
  }
  if (kept.empty())
    fail(ExitStatus::data, "filter: no pair of {} is left: {} empty, {} length, {} repetition",
         pairs, counts[1], counts[2], counts[3]);
  begin();
  LineWriter sources(all.work.source()), targets(all.work.target());
  std::size_t next = 0;
  for_each_pair(all, [&](std::int64_t line, const std::string& source, const SelectedLine& each) {
    if (next == kept.size() || kept[next].line != line) return;
    ++next;
    sources.write(source + "\n");
    targets.write(each.target + "\n");
  });
  sources.commit();
  targets.commit();
  result = {{"pairs", pairs}};
  for (std::size_t i = 1; i < counts.size(); ++i)
    result[std::string(EnumNames<Verdict>::names[i])] = counts[i];
  result["backward"] = backward;
  if (all.spec.overlap_drop > 0) result["overlap"] = overlap;
  result["kept"] = kept.size();
  return ExitStatus::ok;
}

std::string summary(const Json& result) {
  std::string dropped;
  for (const auto& [key, value] : result.items())
    if (key != "pairs" && key != "kept" && value.get<std::int64_t>() > 0)
      dropped += fmt::format("{}{} by {}", dropped.empty() ? "; dropped: " : ", ",
                             grouped(value.get<std::int64_t>()), key);
  return fmt::format("{} of {} pairs kept{}", grouped(result.at("kept").get<std::int64_t>()),
                     grouped(result.at("pairs").get<std::int64_t>()), dropped);
}

}  // namespace

const Step filter_step{DistillStep::filter, settings, run, summary};

}  // namespace nmt::app
