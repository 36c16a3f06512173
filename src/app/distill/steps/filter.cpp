#include "app/distill/pair_filter.h"
#include "app/distill/parts.h"
#include "app/distill/steps/steps.h"
#include "core/number_text.h"
#include "search/line_writer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
using Scored = std::pair<float, std::int64_t>;  // backward score, line

Json settings(const Distillation& all) {
  return {{"max-ratio", all.spec.max_ratio},
          {"backward-drop", all.spec.backward.empty() ? 0.0 : all.spec.backward_drop}};
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

ExitStatus run(const Distillation& all, const Begin& begin, Json& result) {
  PairFilter filter(all.spec.max_ratio);
  std::array<std::int64_t, EnumNames<Verdict>::names.size()> counts{};
  std::vector<Scored> kept;
  std::int64_t pairs = 0;
  for_each_pair(all, [&](std::int64_t line, const std::string& source, const SelectedLine& each) {
    const Verdict verdict = filter.judge(source, each.target);
    ++counts[static_cast<std::size_t>(verdict)];
    ++pairs;
    if (verdict == Verdict::kept) kept.emplace_back(each.backward, line);
  });
  // The worst of the pairs that nothing else drops; of equal scores, the earlier ones.
  std::int64_t dropped = 0;
  if (!all.spec.backward.empty()) {
    dropped = static_cast<std::int64_t>(all.spec.backward_drop * static_cast<double>(kept.size()));
    std::sort(kept.begin(), kept.end());
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(dropped));
    std::sort(kept.begin(), kept.end(),
              [](const Scored& a, const Scored& b) { return a.second < b.second; });
  }
  if (kept.empty())
    fail(ExitStatus::data, "filter: no pair of {} is left: {} empty, {} length, {} repetition",
         pairs, counts[1], counts[2], counts[3]);
  begin();
  LineWriter sources(all.work.source()), targets(all.work.target());
  std::size_t next = 0;
  for_each_pair(all, [&](std::int64_t line, const std::string& source, const SelectedLine& each) {
    if (next == kept.size() || kept[next].second != line) return;
    ++next;
    sources.write(source + "\n");
    targets.write(each.target + "\n");
  });
  sources.commit();
  targets.commit();
  result = {{"pairs", pairs}};
  for (std::size_t i = 1; i < counts.size(); ++i)
    result[std::string(EnumNames<Verdict>::names[i])] = counts[i];
  result["backward"] = dropped;
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
