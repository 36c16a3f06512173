#include "app/distill/pair_filter.h"

#include "core/hash/lines_hash.h"
#include "search/text/repetition_guard.h"
#include "text/lines.h"
#include "text/utf8.h"

#include <algorithm>

namespace nmt::app {
namespace {

std::uint64_t hash_of(const std::string& source, const std::string& target) {
  LinesHash hash;
  hash.add(source);
  hash.add(target);
  return hash.value();
}

}  // namespace

Verdict PairFilter::judge(const std::string& source, const std::string& target) {
  if (is_blank(source) || is_blank(target)) return Verdict::empty;
  const auto [shorter, longer] = std::minmax({count_characters(source), count_characters(target)});
  if (static_cast<double>(longer) > max_ratio_ * static_cast<double>(shorter) + max_ratio_offset)
    return Verdict::length;
  if (find_output_repetition(source, {}, target, {}).found) return Verdict::repetition;
  return seen_.insert(hash_of(source, target)).second ? Verdict::kept : Verdict::duplicate;
}

}  // namespace nmt::app
