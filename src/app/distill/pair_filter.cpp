#include "app/distill/pair_filter.h"

#include "search/text/repetition_guard.h"
#include "text/lines.h"

#include <algorithm>

namespace nmt::app {
namespace {

double characters(const std::string& text) {
  return static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// FNV-1a over both sides, with a line end between them.
std::uint64_t hash_of(const std::string& source, const std::string& target) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const char c : source) mix(static_cast<unsigned char>(c));
  mix('\n');
  for (const char c : target) mix(static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

Verdict PairFilter::judge(const std::string& source, const std::string& target) {
  if (is_blank(source) || is_blank(target)) return Verdict::empty;
  const auto [shorter, longer] = std::minmax({characters(source), characters(target)});
  if (longer > max_ratio_ * shorter + max_ratio_offset) return Verdict::length;
  if (find_output_repetition(source, {}, target, {}).found) return Verdict::repetition;
  return seen_.insert(hash_of(source, target)).second ? Verdict::kept : Verdict::duplicate;
}

}  // namespace nmt::app
