#include "tasks/unknown_labels.h"

#include "core/log.h"
#include "core/number_text.h"
#include "eval/labels.h"

#include <cstdint>
#include <vector>

namespace nmt {

void warn_of_unknown_labels(const std::string& file, std::span<const std::string> known,
                            std::span<const std::string> lines, std::string_view labeled) {
  constexpr std::size_t most = 5;
  const std::vector<UnknownLabel> unknown = unknown_labels(known, lines);
  if (unknown.empty()) return;
  std::int64_t all = 0;
  std::string named;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    all += unknown[i].count;
    if (i < most)
      named += fmt::format("{}{} ({})", i == 0 ? "" : ", ", unknown[i].label, unknown[i].count);
  }
  if (unknown.size() > most) named += fmt::format(" and {} more", unknown.size() - most);
  log::warn("{}: the model does not have the labels of {}, which count as errors: {}", file,
            counted(all, labeled), named);
}

}  // namespace nmt
