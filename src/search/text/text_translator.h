#pragma once

#include "search/batch_translator.h"
#include "search/line_translator.h"
#include "search/text/letter_case.h"
#include "search/text/text_rules.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// A translator with rules for the text.
///
/// Spans to preserve and terms of the glossary: the model translates the whole line. Hypotheses
/// that lack the text of a span are dropped; where none is left, the parts between the spans are
/// translated on their own and joined with the spans in the source's order and white space.
///
/// Repetition guard (find_output_repetition): a degenerate best hypothesis is replaced by the best
/// finished one that is none and no shorter than the text without the repetition; without one the
/// repetition is cut from the text. Scores remain those of the hypothesis before the cut.
///
/// Context: the rules change sentences of the context as they change lines. The parts of a line
/// have its context.
///
/// N-best lists have the best output of another translator first, so that a translation does not
/// depend on whether a list is requested.
///
/// Recasing: a line in capitals or in title case (letter_case_of), without spans, is translated in
/// sentence case; its translations get the case of the line. Addresses and placeholders that only
/// the line in sentence case has are preserved; marked spans and terms of this kind are none.
class TextTranslator : public LineTranslator {
 public:
  struct Statistics {
    std::atomic<std::int64_t> in_parts{0};  ///< lines translated around their spans
    std::atomic<std::int64_t> replaced{0};  ///< repetitions replaced by another hypothesis
    std::atomic<std::int64_t> cut{0};       ///< repetitions removed from the text
  };

  /// The repetition guard needs SearchOptions::all_finished or n_best of the translator. `best`: a
  /// translator with the same rules and search without n_best, which translates a line again if the
  /// best hypothesis of its list breaks a rule; null: lists have what is left of the hypotheses.
  /// All references and `best` outlive this object.
  TextTranslator(BatchTranslator& translator, const Vocabulary& source, const Vocabulary& target,
                 const TextRules& rules, Statistics& statistics, TextTranslator* best = nullptr)
      : translator_(translator),
        source_(source),
        target_(target),
        rules_(rules),
        statistics_(statistics),
        best_(best) {}

  std::vector<LineTranslation> translate(std::span<const std::string> lines,
                                         std::int64_t first_line = 1,
                                         std::span<const ContextSentences> contexts = {}) override;
  std::size_t window() const override { return translator_.window(); }
  const BatchTranslatorOptions& options() const override { return translator_.options(); }

 private:
  /// The case that a line loses for its translation; mixed where it stays as it is.
  LetterCase case_of(const std::string& line) const;
  /// The contexts as the rules have the model read them; none if it has no context.
  std::vector<ContextSentences> read_contexts(std::span<const std::string> lines,
                                              std::span<const ContextSentences> contexts) const;
  /// translate() with recasing, without counting repetitions, with read_contexts().
  std::vector<LineTranslation> recased(std::span<const std::string> lines, std::int64_t first_line,
                                       std::span<const ContextSentences> contexts);
  /// The same of lines in the case that the model reads; `cases` as they were, none: all mixed. No
  /// first_line: of lines that were translated before, which do not count as lines again.
  std::vector<LineTranslation> as_written(std::span<const std::string> lines,
                                          std::optional<std::int64_t> first_line,
                                          std::span<const ContextSentences> contexts,
                                          std::span<const LetterCase> cases = {});
  /// The spans of lines, and the lines without their markers.
  struct MarkedLines {
    std::vector<std::vector<TextSpan>> spans;
    std::vector<std::string> plain;
  };
  MarkedLines marked(std::span<const std::string> lines, std::span<const LetterCase> cases) const;
  /// The same for n-best lists that begin with the output of best_.
  std::vector<LineTranslation> lists(std::span<const std::string> lines,
                                     std::optional<std::int64_t> first_line,
                                     std::span<const ContextSentences> contexts,
                                     std::span<const LetterCase> cases);
  /// The model's translations, without counting repetitions.
  std::vector<LineTranslation> uncounted(std::span<const std::string> lines,
                                         std::optional<std::int64_t> first_line,
                                         std::span<const ContextSentences> contexts);
  std::vector<TextSpan> spans_of(const std::string& line,
                                 LetterCase letter_case = LetterCase::mixed) const;
  /// The model's translations of lines behind the repetition guard.
  std::vector<LineTranslation> guarded(std::vector<LineTranslation> translations,
                                       std::span<const std::string> lines) const;
  bool repeats(const std::string& line, const Output& output) const;
  void cut(const std::string& line, Output& output) const;
  /// Removes repetitions from outputs, of which the best has one.
  void guard(const std::string& line, std::vector<Output>& outputs) const;

  BatchTranslator& translator_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  const TextRules& rules_;
  Statistics& statistics_;
  TextTranslator* best_;
};

}  // namespace nmt
