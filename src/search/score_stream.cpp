#include "search/score_stream.h"

#include "core/error.h"
#include "core/number_text.h"
#include "text/n_best_line.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace nmt {
namespace {

std::int64_t count_rest(LineSource& source) {
  std::string line;
  std::int64_t count = 0;
  while (source.next(line)) ++count;
  return count;
}

// A text and its name in messages.
struct NamedText {
  LineSource& lines;
  const std::string& name;
  std::int64_t read = 0;
};

// The pairs of two texts, window by window.
class PairWindows {
 public:
  PairWindows(NamedText source, NamedText target, bool n_best, int context_sentences)
      : source_(source), target_(target), n_best_(n_best), document_(context_sentences) {}

  // Reads the next pairs, at most `count`. False: the targets have ended.
  bool next(std::size_t count) {
    sources.clear();
    targets.clear();
    n_best_lines.clear();
    contexts.clear();
    first_line = target_.read + 1;
    for (std::string line; targets.size() < count;) {
      if (!target_.lines.next(line)) return false;
      ++target_.read;
      if (n_best_)
        add_n_best(line);
      else
        add_line(line);
      sources.push_back(source_line_);
      contexts.push_back(context_);
    }
    return true;
  }

  // Error (data): there are more sources than targets. N-best lists need not have all sources.
  void expect_end() {
    if (n_best_) return;
    if (const std::int64_t left = count_rest(source_.lines); left > 0)
      fail_of_lengths(source_.read + left, target_.read);
  }

  std::vector<std::string> sources, targets, n_best_lines;
  std::vector<ContextSentences> contexts;
  std::int64_t first_line = 1;

 private:
  void add_line(std::string& line) {
    if (!next_source()) fail_of_lengths(source_.read, target_.read + count_rest(target_.lines));
    targets.push_back(std::move(line));
  }

  void add_n_best(std::string& line) {
    const std::optional<NBestLine> parts = read_n_best(line);
    if (!parts)
      fail(ExitStatus::data,
           "{}:{}: expected a line of an n-best list, 'id ||| text ||| features ||| score'",
           target_.name, target_.read);
    if (parts->id < source_.read - 1)
      fail(ExitStatus::data, "{}:{}: id {} follows id {}; ids must not decrease", target_.name,
           target_.read, parts->id, source_.read - 1);
    while (source_.read <= parts->id)
      if (!next_source())
        fail(ExitStatus::data, "{}:{}: id {} has no source, {} has {} lines", target_.name,
             target_.read, parts->id, source_.name, source_.read);
    targets.emplace_back(parts->text);
    n_best_lines.push_back(std::move(line));
  }

  bool next_source() {
    if (!source_.lines.next(source_line_)) return false;
    ++source_.read;
    context_ = document_.next(source_line_);
    return true;
  }

  [[noreturn]] void fail_of_lengths(std::int64_t sources_read, std::int64_t targets_read) const {
    fail(ExitStatus::data, "{} has {}, but {} has {}: expected equal numbers", source_.name,
         counted(sources_read, "line"), target_.name, grouped(targets_read));
  }

  NamedText source_, target_;
  bool n_best_;
  DocumentContext document_;
  std::string source_line_;  // the last one
  ContextSentences context_;
};

std::string word_scores_of(const PairScore& score) {
  std::string text = " ||| WordScores=";
  for (const float value : score.word_scores)
    fmt::format_to(std::back_inserter(text), " {:.6f}", value);
  return text;
}

std::string line_of(const PairScore& score, const ScoreOutput& output) {
  return fmt::format("{:.6f}{}{}\n", score.score,
                     output.alignment ? " ||| " + pharaoh(score.alignment) : "",
                     output.word_scores ? word_scores_of(score) : "");
}

std::string n_best_line_of(const PairScore& score, const NBestLine& parts,
                           const ScoreOutput& output) {
  return fmt::format("{} ||| {} ||| {}{}{}= {:.6f}{}{}\n", parts.id, parts.text, parts.features,
                     parts.features.empty() ? "" : " ", output.n_best_feature, score.score,
                     parts.rest, output.word_scores ? word_scores_of(score) : "");
}

}  // namespace

void score_stream(PairScorer& scorer, LineSource& source, const std::string& source_name,
                  LineSource& target, const std::string& target_name, LineWriter& writer,
                  const ScoreOutput& output) {
  PairWindows pairs({source, source_name}, {target, target_name}, output.n_best,
                    scorer.context_sentences());
  for (bool more = true; more;) {
    more = pairs.next(scorer.window());
    const std::vector<PairScore> scores =
        scorer.score(pairs.sources, pairs.targets, pairs.first_line, pairs.contexts);
    if (output.summary != Summary::none) continue;
    for (std::size_t i = 0; i < scores.size(); ++i)
      writer.write(output.n_best
                       ? n_best_line_of(scores[i], *read_n_best(pairs.n_best_lines[i]), output)
                       : line_of(scores[i], output));
  }
  pairs.expect_end();
  if (output.summary != Summary::none && scorer.totals().tokens == 0)
    fail(ExitStatus::data, "{} and {}: no pair with text, so there is no summary", source_name,
         target_name);
  if (output.summary != Summary::none)
    writer.write(fmt::format("{:.6f}\n", summarize(scorer.totals(), output.summary)));
  writer.flush();
}

}  // namespace nmt
