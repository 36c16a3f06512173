#pragma once

#include "nmt/settings.h"
#include "nmt/vocabulary.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// Options of a Translator. A member that keeps its default counts as not set; the defaults are
/// those of nmt-translate.
struct TranslatorOptions {
  int beam_size = 4;             ///< 1: greedy search
  double length_penalty = 0.6;   ///< A in score / ((5 + length) / 6)^A (Wu et al. 2016)
  double normalize = 0;          ///< A in score / length^A, excludes length_penalty; 0: off
  double coverage_penalty = 0;   ///< beta of Wu et al. 2016; 0: off
  double max_length_factor = 3;  ///< longest output = factor * source tokens + 10
  int max_length = 1000;         ///< source tokens; longer lines are cropped with a warning
  bool n_best = false;           ///< return all beam_size hypotheses (Translation::alternatives)
  bool allow_unk = false;        ///< let outputs contain <unk>
  std::string alignment = {};    ///< "" (none), "word" or "subword"
  bool attention = false;        ///< fill Translation::attention
  /// File, not "" or "-", then optional numbers, as --shortlist; empty: that of the model
  /// directory, if it has one; "off": none.
  std::vector<std::string> shortlist = {};
  bool pieces_in = false;          ///< lines are in pieces of the source vocabulary already
  bool pieces_out = false;         ///< leave outputs in pieces of the target vocabulary
  int mini_batch = 64;             ///< sentences per batch
  int maxi_batch = 100;            ///< batches per length-sorted window
  std::string device = "cpu";      ///< "cpu", "cuda", "cuda:N" or "auto"
  int workers = 0;                 ///< batches at a time on the CPU; 0: one per thread
  int cpu_threads = 0;             ///< 0: all processors; of each worker if `workers` is set
  std::string precision = "auto";  ///< "auto", "float32", "bfloat16", "int8" (CPU) or "tf32" (GPU)
  std::vector<double> weights = {};            ///< one per model of an ensemble; empty: equal
  std::string ensemble = "log-probabilities";  ///< averaged quantity, or "probabilities"
  /// Other options of nmt-translate, but for those of text files and the command line.
  Settings settings = {};
};

/// A link between a source and a target word (or subword), both counted from 0.
struct AlignmentLink {
  int source = 0, target = 0;
  bool operator==(const AlignmentLink&) const = default;
};

/// Attention weights: one row for each target subword and one for </s>; one column for each source
/// subword and one for </s>. Columns of context sentences, each with its </s>, come before those of
/// the line. Empty unless requested, and for blank lines.
struct Attention {
  int rows = 0, columns = 0;
  std::vector<float> weights;  ///< row by row; each row sums to 1
};

/// Returns true to stop a call. It is called before the first batch of a window and after each
/// batch, and every 50 ms while another call runs, by one thread at a time, but not always by the
/// thread of the call; it must not use the object.
using ShouldStop = std::function<bool()>;

/// The translation of one line.
struct Translation {
  std::string text;                       ///< UTF-8
  std::vector<std::string> tokens;        ///< subwords of the text, without </s>
  double log_prob = 0;                    ///< natural logarithm, </s> included
  double score = 0;                       ///< log_prob under the length and coverage penalties
  std::vector<AlignmentLink> alignment;   ///< sorted by source; empty unless requested
  Attention attention;                    ///< empty unless requested
  std::vector<Translation> alternatives;  ///< with n_best: the other hypotheses, best first
};

/// Translates text with one model or an ensemble. Translations are those of nmt-translate, bit for
/// bit, however the lines are grouped into calls, unless the model reads context sentences: then
/// the lines of a call are a document, and a blank line ends it.
///
/// Thread safety: several threads may call translate() and translate_line() of one object, which
/// computes one call at a time with its own pool of threads. ReadLine and WriteTranslation run in
/// the thread of the call, while other threads may use the object. Construction, assignment and
/// destruction need the object alone. Distinct objects are independent.
class Translator {
 public:
  /// Loads a model directory. Errors (usage): no such model or device, an unknown option or a value
  /// out of range; (data): damaged files; (memory): std::bad_alloc or OutOfMemory.
  explicit Translator(const std::string& model, const TranslatorOptions& options = {});
  /// Loads several models that share the target vocabulary and averages their predictions. Errors:
  /// as the constructor; (usage): vocabularies that differ.
  static Translator ensemble(const std::vector<std::string>& models,
                             const TranslatorOptions& options = {});
  /// Another translator with the loaded models, the threads and the lock of this one, and other
  /// options of the search. Either may be destroyed first. max_length, pieces_in, device, workers,
  /// cpu_threads, precision, weights, ensemble, and the settings lm, lm-weight, recurrences and
  /// cuda-graphs are those of this translator. Errors (usage): as the constructor; one of these is
  /// set to another value.
  Translator with(const TranslatorOptions& options) const;
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;
  ~Translator();

  /// Translates each line; result i belongs to lines[i]. Lines are UTF-8 without line ends; invalid
  /// bytes become U+FFFD. A blank line becomes an empty translation. Errors (data): a line that
  /// contains a line feed; (memory): as the constructor; (interrupted): `stop` returned true. After
  /// an error the object is usable. `first` is the number that messages give lines[0].
  std::vector<Translation> translate(const std::vector<std::string>& lines,
                                     const ShouldStop& stop = {}, std::int64_t first = 1);
  /// The same for a single line.
  Translation translate_line(const std::string& line);

  /// Reads the next line; false after the last one.
  using ReadLine = std::function<bool(std::string& line)>;
  /// Receives translations in the order of the lines.
  using WriteTranslation = std::function<void(const Translation& translation)>;
  /// Translates lines until `read` returns false; at most window() lines are held in memory.
  /// Returns their number. Errors: as translate(); exceptions of the callbacks pass through.
  std::int64_t translate(const ReadLine& read, const WriteTranslation& write);
  /// Translates the lines of a file into another, in the output format of nmt-translate. The output
  /// appears whole or not at all. Returns the number of lines. Errors: as translate(); (usage): a
  /// file cannot be opened, the output is the input, or a name is "" or "-"; (failed): the output
  /// cannot be written.
  std::int64_t translate_file(const std::string& input, const std::string& output,
                              const ShouldStop& stop = {});
  /// Number of preceding lines of the document that the model reads with each line; 0: none.
  int context_sentences() const;
  /// Lines that translate() sorts by length together: mini_batch * maxi_batch.
  std::size_t window() const;

  /// The vocabularies of the (first) model; they live as long as the object.
  const Vocabulary& source_vocabulary() const;
  const Vocabulary& target_vocabulary() const;

 private:
  friend class Scorer;
  struct Impl;
  explicit Translator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
