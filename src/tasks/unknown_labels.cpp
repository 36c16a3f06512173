#include "tasks/unknown_labels.h"

#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "eval/labels.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nmt {
namespace {

// "12 words: A (10), B (2)"; `before` comes before the colon.
std::string described(const std::vector<UnknownLabel>& unknown, std::string_view labeled,
                      std::string_view before) {
  constexpr std::size_t max_named = 5;
  std::int64_t all = 0;
  std::string named;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    all += unknown[i].count;
    if (i < max_named)
      named += fmt::format("{}{} ({})", i == 0 ? "" : ", ", unknown[i].label, unknown[i].count);
  }
  if (unknown.size() > max_named) named += fmt::format(" and {} more", unknown.size() - max_named);
  return fmt::format("{}{}: {}", counted(all, labeled), before, named);
}

}  // namespace

void warn_of_unknown_labels(const std::string& file, std::span<const std::string> known,
                            std::span<const std::string> lines, std::string_view labeled) {
  const std::vector<UnknownLabel> unknown = unknown_labels(known, lines);
  if (!unknown.empty())
    log::warn("{}: the model does not have the labels of {}", file,
              described(unknown, labeled, ", which count as errors"));
}

void require_known_labels(const std::string& file, std::span<const std::string> known,
                          std::span<const std::string> lines, std::string_view labeled,
                          std::string_view start_anew) {
  const std::vector<UnknownLabel> unknown = unknown_labels(known, lines, true);
  if (!unknown.empty())
    fail(ExitStatus::data,
         "{}: the model does not have the labels of {}; it cannot learn new labels: take them out "
         "of the text, or {}",
         file, described(unknown, labeled, ""), start_anew);
}

void require_an_example_of_known_labels(const std::string& file, std::span<const std::string> known,
                                        std::span<const std::string> lines,
                                        std::string_view example) {
  const bool has_one = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return unknown_labels(known, {&line, 1}, true).empty();
  });
  if (!has_one)
    fail(ExitStatus::data,
         "{}: every {} has a label that the training text does not have, so there is no "
         "cross-entropy to validate with; is it the development set of this text?",
         file, example);
}

}  // namespace nmt
