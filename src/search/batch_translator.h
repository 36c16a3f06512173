#pragma once

#include "nmt/vocabulary.h"
#include "search/alignment.h"
#include "search/batching.h"
#include "search/beam/beam_search.h"
#include "search/oom_splitter.h"
#include "search/piece_text.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// So many times in a row are told, unless the source does as much.
inline constexpr int repetitions_told = 8;

struct BatchTranslatorOptions {
  SearchOptions search;
  AlignmentKind alignment = AlignmentKind::none;
  Batching batching;
  bool pieces_in = false;   ///< lines are in the source vocabulary's pieces already (PieceText)
  bool pieces_out = false;  ///< outputs stay in the target vocabulary's pieces
  /// Warn once when an output repeats something `repetitions_told` times in a row or more.
  bool tell_repetitions = false;
  /// After each batch, with the number of sentences it had; may be empty.
  std::function<void(std::int64_t sentences)> on_batch;
};

/// The options that a SearchSpec asks for. Errors (usage): as search_options(), and unknown words.
BatchTranslatorOptions translator_options(const SearchSpec& spec, const Cpu& cpu);

/// One translation of a line.
struct Output {
  std::string text;
  std::vector<std::int32_t> ids;
  float log_prob = 0;
  float score = 0;
  std::vector<AlignmentPoint> alignment;  ///< between words or pieces as asked for
};

/// What becomes of one line: one output, or an n-best list, best first.
struct LineTranslation {
  std::vector<Output> outputs;
  /// Times that the best output repeats something in a row, 0 when it is few or the source does so
  /// too.
  int repeated = 0;
};

/// Text to text: encodes lines, sorts them by length into batches, searches, decodes. One thread
/// uses it; inside it uses the pool.
class BatchTranslator {
 public:
  struct Statistics {
    std::int64_t sentences = 0;      ///< lines that went through the model
    std::int64_t source_tokens = 0;  ///< without </s>
    std::int64_t target_tokens = 0;  ///< of the best outputs, without </s>
    std::int64_t cropped = 0;        ///< lines longer than max_length
    std::int64_t repeating =
        0;  ///< lines whose output repeats something (LineTranslation::repeated)
  };

  /// The scorer and the vocabularies outlive the translator. Errors (usage): numbers out of range;
  /// (failed): the scorer's vocabulary is not as large as `target`.
  BatchTranslator(StepScorer& scorer, const Vocabulary& source, const Vocabulary& target,
                  BatchTranslatorOptions options);

  /// Translates lines of valid UTF-8; results are in the lines' order. A line without anything but
  /// white space becomes an empty output without the model. A line of more than max_length tokens
  /// is cropped; the first is named in a warning, where `first_line` is the number of lines[0],
  /// from 1. Neither the order of lines nor the batches change a result.
  std::vector<LineTranslation> translate(std::span<const std::string> lines,
                                         std::int64_t first_line = 1);

  /// Lines that translate() is best given at once.
  std::size_t window() const { return options_.batching.window(); }
  const BatchTranslatorOptions& options() const { return options_; }
  const Statistics& statistics() const { return statistics_; }

 private:
  LineTranslation read(const SentenceResult& result, std::string_view line,
                       std::span<const std::int32_t> source) const;

  StepScorer& scorer_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  BatchTranslatorOptions options_;
  std::optional<PieceText> source_pieces_, target_pieces_;
  Statistics statistics_;
  OomSplitter oom_splitter_;
};

/// The lines that stand for a translation, each with its LF: plain `text`, or an n-best list in the
/// format of Moses as Marian writes it, `id ||| text ||| F0= log-probability ||| score`, id from 0.
/// Alignments, where asked for, follow the text.
std::string format_translation(const LineTranslation& translation, std::int64_t id,
                               const BatchTranslatorOptions& options);

}  // namespace nmt
