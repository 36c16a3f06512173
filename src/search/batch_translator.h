#pragma once

#include "nmt/vocabulary.h"
#include "search/alignment.h"
#include "search/batching.h"
#include "search/beam/beam_search.h"
#include "search/crew.h"
#include "search/line_translator.h"
#include "search/oom_splitter.h"
#include "search/piece_text.h"
#include "search/source_encoder.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// Minimum number of consecutive repetitions to report, unless the source repeats as often.
inline constexpr int min_reported_repetitions = 8;
/// Number of consecutive repetitions of a sequence in `output`; 0 if they are not to be reported.
int reported_repetitions(std::span<const std::int32_t> output,
                         std::span<const std::int32_t> source);

struct BatchTranslatorOptions {
  SearchOptions search;
  AlignmentKind alignment = AlignmentKind::none;
  Batching batching;
  int context_sentences = 0;  ///< of the model: ModelSpec::context_sentences
  bool pieces_in = false;     ///< lines consist of source pieces (PieceText)
  bool pieces_out = false;    ///< outputs are target pieces
  bool attention = false;     ///< fill Output::attention
  /// Warn once when an output repeats a sequence at least min_reported_repetitions times.
  bool warn_repetitions = false;
  bool warn_crops = true;  ///< warn of the first line longer than max_length
  /// Called after each batch with its number of sentences, by one thread at a time; may be empty.
  std::function<void(std::int64_t sentences)> on_batch;
  Crew crew;  ///< translates several batches at a time; no workers: one at a time
};

/// Replaces the line feeds of a decoded text: byte pieces may give some.
void keep_in_one_line(std::string& text);

/// Converts a SearchSpec. Errors (usage): as search_options(), and unknown names.
BatchTranslatorOptions translator_options(const SearchSpec& spec, const Cpu& cpu);

/// One translation of a line.
struct Output {
  std::string text;
  std::vector<std::int32_t> ids;
  float log_prob = 0;
  float score = 0;
  std::vector<AlignmentPoint> alignment;  ///< between words or pieces
  /// Hypothesis::attention, if requested; the columns of the context come first.
  std::vector<float> attention;
};

/// The translation of one line: one output, or an n-best list, best first.
struct LineTranslation {
  std::vector<Output> outputs;
  /// Number of consecutive repetitions of a sequence in the best output; 0 when there are few or
  /// the source repeats as often.
  int repeated = 0;
};

/// Translates text: encodes lines, sorts them by length into batches, searches, decodes. Not
/// thread-safe; it uses the thread pool and the crew internally.
class BatchTranslator : public LineTranslator {
 public:
  struct Statistics {
    std::int64_t sentences = 0;      ///< lines translated by the model, without parts
    std::int64_t source_tokens = 0;  ///< of these lines, without </s> and context
    std::int64_t target_tokens = 0;  ///< tokens of the best outputs, without </s>
    std::int64_t cropped = 0;        ///< lines longer than max_length
    std::int64_t repeating = 0;      ///< lines with LineTranslation::repeated > 0
  };

  /// The scorer and the vocabularies must outlive the translator. Errors: (usage) a value is out of
  /// range; (failed) the vocabulary of the scorer differs from `target` in size.
  BatchTranslator(StepScorer& scorer, const Vocabulary& source, const Vocabulary& target,
                  BatchTranslatorOptions options);

  /// Translates lines of valid UTF-8; results are in the order of the lines. Blank lines become
  /// empty outputs without using the model. Lines of more than max_length tokens are cropped; a
  /// warning names the first (warn_crops), where `first_line` is the number of lines[0], from 1.
  /// Results do not depend on the order of lines or the batches.
  std::vector<LineTranslation> translate(std::span<const std::string> lines,
                                         std::int64_t first_line = 1,
                                         std::span<const ContextSentences> contexts = {}) override;

  /// translate() of parts of lines that translate() has had: they count as no lines of their own,
  /// in statistics(), warnings and BatchTranslatorOptions::on_batch.
  std::vector<LineTranslation> translate_parts(std::span<const std::string> parts,
                                               std::span<const ContextSentences> contexts = {});
  /// translate() without count_repetitions(), for a caller that replaces translations.
  std::vector<LineTranslation> translate_uncounted(std::span<const std::string> lines,
                                                   std::int64_t first_line,
                                                   std::span<const ContextSentences> contexts);
  /// Counts the translations that repeat a sequence, and warns of the first.
  void count_repetitions(std::span<const LineTranslation> translations, std::int64_t first_line);

  /// Recommended number of lines per call of translate().
  std::size_t window() const override { return options_.batching.window(); }
  const BatchTranslatorOptions& options() const override { return options_; }
  const Statistics& statistics() const { return statistics_; }
  const SourceEncoder& encoder() const { return encoder_; }

 private:
  using Ids = std::vector<std::int32_t>;
  /// translate_uncounted(), or without `first_line` translate_parts().
  std::vector<LineTranslation> run(std::span<const std::string> lines,
                                   std::optional<std::int64_t> first_line,
                                   std::span<const ContextSentences> contexts);
  /// Translates the lines with these numbers as one batch.
  void translate_batch(const Worker& worker, std::span<const std::size_t> batch,
                       std::span<const std::string> lines, std::span<const EncodedSource> encoded,
                       std::vector<LineTranslation>& translations);
  LineTranslation read(const SentenceResult& result, std::string_view line,
                       const SourceIds& source) const;

  StepScorer& scorer_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  BatchTranslatorOptions options_;
  SourceEncoder encoder_;
  std::optional<PieceText> target_pieces_;
  Statistics statistics_;
  OomSplitter oom_splitter_{options_.batching.option};
};

/// The output lines of a translation, each with its LF: the plain text, or an n-best list in the
/// Moses format as written by Marian, `id ||| text ||| F0= log-probability ||| score`, with ids
/// from 0. Alignments, if requested, follow the text.
std::string format_translation(const LineTranslation& translation, std::int64_t id,
                               const BatchTranslatorOptions& options);

}  // namespace nmt
