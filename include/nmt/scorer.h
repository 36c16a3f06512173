#pragma once

#include "nmt/settings.h"
#include "nmt/translator.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// Options of a Scorer. A member that keeps its default counts as not set; the defaults are those
/// of nmt-score.
struct ScorerOptions {
  double length_penalty = 0;    ///< as TranslatorOptions; 0: scores are log probabilities
  double normalize = 0;         ///< as TranslatorOptions
  double coverage_penalty = 0;  ///< as TranslatorOptions
  int max_length = 1000;        ///< tokens; longer sources and targets are cropped with a warning
  std::string alignment = {};   ///< "" (none), "word" or "subword"
  bool attention = false;       ///< fill PairProbability::attention
  bool pieces_in = false;       ///< both sides are in pieces of the vocabularies already
  int mini_batch = 64;          ///< pairs per batch
  int maxi_batch = 100;         ///< batches per length-sorted window
  std::string device = "cpu";   ///< "cpu", "cuda", "cuda:N" or "auto"
  int workers = 0;              ///< batches at a time on the CPU; 0: one per thread
  int cpu_threads = 0;          ///< 0: all processors; of each worker if `workers` is set
  std::string precision = "auto";              ///< as TranslatorOptions
  std::vector<double> weights = {};            ///< one per model of an ensemble; empty: equal
  std::string ensemble = "log-probabilities";  ///< averaged quantity, or "probabilities"
  /// Other options of nmt-score, but for those of text files, output and the command line.
  Settings settings = {};
};

/// The score of a target given its source.
struct PairProbability {
  double log_prob = 0;                   ///< of the target, </s> included; natural logarithm
  double score = 0;                      ///< log_prob under the length and coverage penalties
  std::vector<float> token_log_probs;    ///< of each subword of the target; the last is </s>
  std::vector<AlignmentLink> alignment;  ///< sorted by source; empty unless requested
  Attention attention;                   ///< empty unless requested
};

/// Scores pairs of sentences by forced decoding. Scores are those of nmt-score, bit for bit.
///
/// Thread safety: several threads may call score() of one object, which computes one call at a
/// time; otherwise as Translator.
class Scorer {
 public:
  /// Errors: as Translator.
  explicit Scorer(const std::string& model, const ScorerOptions& options = {});
  /// Errors: as Translator::ensemble.
  static Scorer ensemble(const std::vector<std::string>& models, const ScorerOptions& options = {});
  /// A scorer with the loaded models, the threads and the lock of a translator. Either may be
  /// destroyed first. Errors (usage): as Translator::with; the translator has a language model
  /// (lm).
  explicit Scorer(const Translator& translator, const ScorerOptions& options = {});
  Scorer(Scorer&&) noexcept;
  Scorer& operator=(Scorer&&) noexcept;
  ~Scorer();

  /// Scores targets[i] given sources[i]. Lines are UTF-8 without line ends. Two blank lines score
  /// 0. Errors (data): different numbers of lines, a line that contains a line feed; (memory): as
  /// the constructor; (interrupted): `stop` returned true. With a model that reads context
  /// sentences, the sources of a call are a document, and a blank line ends it.
  std::vector<PairProbability> score(const std::vector<std::string>& sources,
                                     const std::vector<std::string>& targets,
                                     const ShouldStop& stop = {});
  /// Scores n-best lists: targets[i] are the candidates for sources[i], and result i has their
  /// scores in the same order. Errors: as score().
  std::vector<std::vector<PairProbability>> score_n_best(
      const std::vector<std::string>& sources, const std::vector<std::vector<std::string>>& targets,
      const ShouldStop& stop = {});

 private:
  struct Impl;
  explicit Scorer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
