#include "core/error.h"
#include "core/number_text.h"
#include "search/pair_scorer.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace nmt {
namespace {

constexpr std::string_view separator = " ||| ";

/// A line of an n-best list: "id ||| text ||| features ||| score"; everything after the features is
/// optional.
struct NBestLine {
  std::int64_t id = -1;
  std::string_view text, features, rest;  // rest: includes its separator
};

/// Whether a field starts as the features do: "NAME= ".
bool names_feature(std::string_view field) {
  const std::size_t end = field.find(' ');
  return end != std::string_view::npos && end > 1 && field[end - 1] == '=';
}

/// Whether a field is an alignment, such as "0-0 2-1"; it may be empty.
bool is_alignment(std::string_view field) {
  return field.find_first_not_of("0123456789- ") == std::string_view::npos;
}

/// Where the text ends in what follows the id: at the features or at the alignment before them,
/// since the text may have separators too. Without features, at the first separator.
std::size_t end_of_text(std::string_view line) {
  const std::size_t first = line.find(separator);
  std::size_t before = std::string_view::npos;  // the separator before the one at `at`
  for (std::size_t at = first; at != std::string_view::npos; at = line.find(separator, at + 1)) {
    if (names_feature(line.substr(at + separator.size()))) {
      if (before == std::string_view::npos) return at;
      const std::size_t begin = std::min(before + separator.size(), at);
      return is_alignment(line.substr(begin, at - begin)) ? before : at;
    }
    before = at;
  }
  return first;
}

std::optional<NBestLine> read_n_best(std::string_view line) {
  const std::size_t first = line.find(separator);
  if (first == std::string_view::npos) return std::nullopt;
  NBestLine parts;
  const auto parsed = std::from_chars(line.data(), line.data() + first, parts.id);
  if (parsed.ec != std::errc() || parsed.ptr != line.data() + first || parts.id < 0)
    return std::nullopt;
  // An empty text gives " ||| ||| "; the separators do not share a blank.
  line.remove_prefix(first + separator.size());
  const std::size_t second = end_of_text(line);
  parts.text = line.substr(0, second);
  if (second == std::string_view::npos) return parts;
  line.remove_prefix(second + separator.size());
  // An alignment may precede the features, and follow the score.
  std::size_t begin = 0;
  while (begin != std::string_view::npos && !names_feature(line.substr(begin))) {
    begin = line.find(separator, begin);
    if (begin != std::string_view::npos) begin += separator.size();
  }
  if (begin == std::string_view::npos) {  // features without names
    const std::size_t end = line.find(separator);
    const bool is_behind_alignment = end != std::string_view::npos &&
                                     line.find(separator, end + 1) != std::string_view::npos &&
                                     is_alignment(line.substr(0, end));
    begin = is_behind_alignment ? end + separator.size() : 0;
  }
  const std::size_t third = line.find(separator, begin);
  parts.features = line.substr(0, third);
  if (third != std::string_view::npos) parts.rest = line.substr(third);
  return parts;
}

std::string word_scores_of(const PairScore& score) {
  std::string text = " ||| WordScores=";
  for (const float value : score.word_scores)
    fmt::format_to(std::back_inserter(text), " {:.6f}", value);
  return text;
}

std::int64_t count_rest(LineSource& source) {
  std::string line;
  std::int64_t count = 0;
  while (source.next(line)) ++count;
  return count;
}

}  // namespace

void score_stream(PairScorer& scorer, LineSource& source, const std::string& source_name,
                  LineSource& target, const std::string& target_name, LineWriter& writer,
                  const ScoreOutput& output) {
  std::vector<std::string> sources, targets, lines;
  DocumentContext document(scorer.context_sentences());
  std::vector<ContextSentences> contexts;
  ContextSentences context;  // of the last source line
  std::int64_t targets_read = 0, sources_read = 0;
  std::string source_line, target_line;
  for (bool more = true; more;) {
    sources.clear();
    targets.clear();
    lines.clear();
    contexts.clear();
    const std::int64_t first_line = targets_read + 1;
    while (targets.size() < scorer.window()) {
      more = target.next(target_line);
      if (!more) break;
      ++targets_read;
      if (!output.n_best) {
        if (!source.next(source_line))
          fail(ExitStatus::data, "{} has {}, but {} has {}: expected equal numbers", source_name,
               counted(sources_read, "line"), target_name,
               grouped(targets_read + count_rest(target)));
        ++sources_read;
        context = document.next(source_line);
        targets.push_back(std::move(target_line));
      } else {
        const std::optional<NBestLine> parts = read_n_best(target_line);
        if (!parts)
          fail(ExitStatus::data,
               "{}:{}: expected a line of an n-best list, 'id ||| text ||| features ||| score'",
               target_name, targets_read);
        if (parts->id < sources_read - 1)
          fail(ExitStatus::data, "{}:{}: id {} follows id {}; ids must not decrease", target_name,
               targets_read, parts->id, sources_read - 1);
        while (sources_read <= parts->id) {
          if (!source.next(source_line))
            fail(ExitStatus::data, "{}:{}: id {} has no source, {} has {} lines", target_name,
                 targets_read, parts->id, source_name, sources_read);
          ++sources_read;
          context = document.next(source_line);
        }
        targets.emplace_back(parts->text);
        lines.push_back(std::move(target_line));
      }
      sources.push_back(source_line);
      contexts.push_back(context);
    }
    const std::vector<PairScore> scores = scorer.score(sources, targets, first_line, contexts);
    if (output.summary != Summary::none) continue;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::string words = output.word_scores ? word_scores_of(scores[i]) : "";
      if (output.n_best) {
        const NBestLine parts = *read_n_best(lines[i]);
        writer.write(fmt::format("{} ||| {} ||| {}{}{}= {:.6f}{}{}\n", parts.id, parts.text,
                                 parts.features, parts.features.empty() ? "" : " ",
                                 output.n_best_feature, scores[i].score, parts.rest, words));
      } else {
        const std::string links = output.alignment ? " ||| " + pharaoh(scores[i].alignment) : "";
        writer.write(fmt::format("{:.6f}{}{}\n", scores[i].score, links, words));
      }
    }
  }
  if (!output.n_best)
    if (const std::int64_t left = count_rest(source); left > 0)
      fail(ExitStatus::data, "{} has {}, but {} has {}: expected equal numbers", source_name,
           counted(sources_read + left, "line"), target_name, grouped(targets_read));
  if (output.summary != Summary::none && scorer.totals().tokens == 0)
    fail(ExitStatus::data, "{} and {}: no pair with text, so there is no summary", source_name,
         target_name);
  if (output.summary != Summary::none)
    writer.write(fmt::format("{:.6f}\n", summarize(scorer.totals(), output.summary)));
  writer.flush();
}

}  // namespace nmt
