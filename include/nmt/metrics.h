#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

// BLEU, chrF, TER and significance tests as sacreBLEU 2 computes them (Post 2018), digit by digit.
// All functions are thread-safe. Sentences are detokenized UTF-8; white space at their ends is
// dropped, and invalid bytes become U+FFFD, as in nmt-bleu.

constexpr int bleu_order = 4;

/// How a line is split into words before n-grams are counted.
enum class BleuTokenizer {
  v13a,       ///< mteval-v13a: separates ASCII punctuation, resolves four entities
  intl,       ///< mteval-v14 --international-tokenization: Unicode punctuation and symbols
  none,       ///< white space only
  multi_bleu  ///< multi-bleu.perl on tokenized text: bytes, ASCII white space and letter case
};

/// Smoothing for orders without matches (Chen & Cherry 2014).
enum class BleuSmoothing {
  exp,    ///< 1/2, 1/4, ... of a match for the first, second, ... such order (NIST)
  floor,  ///< smoothing_value matches
  add_k,  ///< smoothing_value more matches and n-grams, for all orders but the first
  none
};

/// The defaults are those of sacreBLEU.
struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  bool lowercase = false;
  BleuSmoothing smoothing = BleuSmoothing::exp;
  double smoothing_value = -1;   ///< of floor and add_k; below 0: floor 0.1, add-k 1
  bool effective_order = false;  ///< skip orders longer than the text: for single sentences
};

/// n-gram counts of one sentence or of a corpus; the sum over sentences is that of the corpus.
struct BleuCounts {
  std::array<std::int64_t, bleu_order> correct{};  ///< clipped matches of each order
  std::array<std::int64_t, bleu_order> total{};    ///< n-grams of the hypothesis
  std::int64_t hypothesis_length = 0;              ///< words
  std::int64_t reference_length = 0;               ///< of the reference closest in length
  BleuCounts& operator+=(const BleuCounts& other);
};

/// Corpus BLEU and what it is made of.
struct BleuScore {
  double score = 0;                             ///< 0 to 100
  std::array<double, bleu_order> precisions{};  ///< 0 to 100
  double brevity_penalty = 0;                   ///< 0 to 1
  BleuCounts counts;
};

/// The defaults are those of sacreBLEU.
struct ChrfOptions {
  int character_order = 6;  ///< longest character n-grams
  int word_order = 0;       ///< longest word n-grams; 2: chrF++
  int beta = 2;             ///< weight of recall against precision
  bool lowercase = false;
  bool whitespace = false;  ///< count white space among the characters
};

/// The defaults are those of sacreBLEU.
struct TerOptions {
  bool case_sensitive = false;  ///< otherwise letter case is no edit
};

/// The sentences of one system or of one reference; sentence i of each belongs together.
using Sentences = std::vector<std::string>;

/// Corpus BLEU (Papineni et al. 2002). references[k][i] is the k-th reference of hypotheses[i].
/// Errors (data): no sentence, no reference, different numbers of lines; (usage): a smoothing_value
/// for a smoothing without one.
BleuScore bleu(const Sentences& hypotheses, const std::vector<Sentences>& references,
               const BleuOptions& options = {});
/// Corpus chrF (Popovic 2015), 0 to 100. Errors: as bleu(); (usage): orders out of range.
double chrf(const Sentences& hypotheses, const std::vector<Sentences>& references,
            const ChrfOptions& options = {});

/// Corpus TER (Snover et al. 2006): edits of words and shifts of phrases in percent of the length
/// of the references; lower is better. Errors: as bleu().
double ter(const Sentences& hypotheses, const std::vector<Sentences>& references,
           const TerOptions& options = {});

/// sacreBLEU's signature for a number of references of each sentence,
/// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:nmt-0.2.0".
std::string signature(const BleuOptions& options, int references);
std::string signature(const ChrfOptions& options, int references);
std::string signature(const TerOptions& options, int references);

constexpr std::uint64_t significance_seed = 12345;

/// The 95 % confidence interval of a score, from 0 to 100.
struct Interval {
  double mean = 0;        ///< of the resamples
  double half_width = 0;  ///< half the distance between their 2.5 % and 97.5 % quantiles
};

/// One system against the baseline.
struct PairedResult {
  double score = 0;     ///< of the corpus, 0 to 100
  double p_value = -1;  ///< (c + 1) / (samples + 1), two-sided, as sacreBLEU; baseline: below 0
  bool has_interval = false;  ///< with the bootstrap
  Interval interval;
};

enum class SignificanceTest {
  bootstrap,     ///< paired bootstrap resampling (Koehn 2004)
  randomization  ///< paired approximate randomization (Riezler and Maxwell 2005)
};

/// Compares systems on the same sentences; systems[0] is the baseline. One result per system. The
/// resamples are those of numpy's default_rng(seed). Errors: as bleu(); (usage): a single system,
/// fewer than 2 samples.
std::vector<PairedResult> compare_bleu(const std::vector<Sentences>& systems,
                                       const std::vector<Sentences>& references,
                                       const BleuOptions& options = {},
                                       SignificanceTest test = SignificanceTest::bootstrap,
                                       int samples = 1000, std::uint64_t seed = significance_seed);
/// As compare_bleu(). Errors: as compare_bleu(); (usage): orders out of range.
std::vector<PairedResult> compare_chrf(const std::vector<Sentences>& systems,
                                       const std::vector<Sentences>& references,
                                       const ChrfOptions& options = {},
                                       SignificanceTest test = SignificanceTest::bootstrap,
                                       int samples = 1000, std::uint64_t seed = significance_seed);

}  // namespace nmt
