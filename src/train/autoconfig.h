#pragma once

#include "config/specs.h"
#include "text/noise.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::train {

/// The size that the choices depend on: the training part of the corpus, without development pairs.
struct CorpusSize {
  std::int64_t pairs = 0;
  std::int64_t target_bytes = 0;
};

struct Choice {
  std::string name, value;  ///< as on the command line
  std::string why;
};

/// Number of pairs to hold out when there is no development set: a twentieth, at least 10 (half of
/// a corpus below 20 pairs), at most 1,000, whose BLEU has a 95% interval of about +-1.5.
std::int64_t held_out_pairs(std::int64_t pairs);

/// Sets `positions` to `usual`, the steps of the longest sentence or window, if it is not set and a
/// unit has position vectors; returns whether it did.
bool choose_positions(ModelSpec& model, int usual);
/// As above, with the usual number of the task: 1 for language models, else max-length.
bool choose_positions(ModelSpec& model, const DataSpec& data);

/// Chooses the GRU for translation models without blocks and fewer than small_corpus_pairs: its
/// BLEU is as high as that of the default unit after ten minutes, and higher later
/// (docs/benchmarks/results.md, "Unit of small corpora"). Returns whether it did. For settings that
/// do not mention a unit.
bool choose_unit(const CorpusSize& size, ModelSpec& model);

/// Ties both embeddings and the softmax if both sides share a vocabulary (Press & Wolf, EACL 2017):
/// every piece is then trained by all three uses, with a third of the weights. Returns whether it
/// did. For settings that do not mention tying.
bool choose_tying(ModelSpec& model, const DataSpec& data);

/// Chooses a moving average of the weights for translation models whose learning rate is chosen too
/// (choose(), to be called later). Without it, the choice was 0.9 BLEU below configs/multi30k.yaml,
/// which has it (docs/benchmarks/results.md, "Automatic configuration: Multi30k"). Returns whether
/// it did. For settings that do not mention `exponential-smoothing`.
bool choose_smoothing(const CorpusSize& size, TrainSpec& train);

/// Sets the learning rate and its warm-up, where they are not set. `usual` and `why` are the rate
/// for adam and adamw and its reason, `warmup` and `warmup_why` their warm-up; the other optimizers
/// have a rate of their own and no warm-up. The RNMT+ schedule has its own warm-up, which begins at
/// a part of the peak.
void choose_learning_rate(TrainSpec& train, double usual, const std::string& why,
                          const std::string& warmup, const std::string& warmup_why,
                          std::vector<Choice>& choices);

/// Updates of an epoch with so many batches by --mini-batch-words; more if --mini-batch makes
/// smaller batches of the `examples`.
double updates_per_epoch(double batches, std::int64_t examples, const DataSpec& data,
                         const TrainSpec& train);

/// Sets `save-freq`, where it is not set, to valid-freq, or to `usual` if that is none: a training
/// without validations still needs checkpoints. `usual` is what valid-freq would be if it were
/// chosen, `why` the reason.
void choose_save_freq(TrainSpec& train, const std::string& usual, const std::string& why,
                      std::vector<Choice>& choices);

/// Resolves `attention-query: auto`; returns whether it did. Without attention it is kept.
bool choose_attention_query(ModelSpec& model);

/// Resolves `gate-init: auto`; returns whether it did, and a unit of the model has gates that start
/// by it.
bool choose_gate_init(ModelSpec& model);

/// Resolves `embedding-scale: auto` of blocks; returns whether it did. No effect on
/// other architectures.
bool choose_embedding_scale(ModelSpec& model);

/// The noise of new trainings on large corpora: rates of the Firefox Translations students.
inline constexpr NoiseSpec usual_noise{
    .upper = 0.07, .title = 0.05, .typos = 0.05, .punctuation = 0.2};

/// Resolves the rates of noise; returns those above 0. Usual rates from 500,000 pairs on. None
/// below, where a run sees too few noised pairs to learn from them, and none for a vocabulary of
/// words, in which the spellings of a word have nothing in common.
std::vector<Choice> choose_noise(const CorpusSize& size, const DataSpec& data, NoiseSpec& noise);

/// Fills settings that are not set (0, "", empty, or -1 for dropout) and logs what was chosen and
/// why. By the size of the corpus:
///
/// pairs below  width depth vocabulary words  dropout learn-rate warm-up epochs
///        5,000   128   1+1      1,000  1024      0.2     0.003    100u     60
///       20,000   256   1+1      4,000  1024      0.3     0.004    200u     60
///      100,000   256   2+2      8,000  1280     0.25     0.004    400u     60
///      500,000   256   2+2      8,000  1280      0.2     0.004   1000u     20
///    2,000,000   512   3+3     24,000  8192      0.1     0.001   4000u     10
///       beyond  1024   4+4     32,000 16384      0.1    0.0005   8000u      5
///
/// - Width and depth: as many weights as the text can train; a wider model overfits, and on a CPU
///   the time of an epoch grows with the square of the width.
/// - Vocabulary: a piece should occur some hundred times in training, or its embedding stays near
///   its random initialization (Gowda & May 2020: 8,000 pieces or fewer are best for 30,000
///   sentences, 32,000 for 4.5 million).
/// - Words (padded target tokens per batch): a few hundred updates per epoch. Larger batches mean
///   fewer updates; smaller ones make the matrix products inefficient. With 15,000
///   pairs, 1,024 and the learning rate 0.004 gain 1.4 BLEU over 2,048 and 0.002 in the same
///   minutes (docs/benchmarks/results.md).
/// - Dropout: more for smaller corpora (Sennrich & Zhang 2019).
/// - Learning rate: that of the table for adam and adamw, else the default of the optimizer
///   (optimizer.h).
/// - Warm-up: two to four epochs of a small corpus; Adam's second moments need a few hundred
///   updates to become reliable. None for other optimizers.
/// - Epochs: an upper bound; early stopping usually comes first.
/// - Positions: choose_positions(). Attention-query: choose_attention_query().
/// - Gate-init: choose_gate_init(). Embedding-scale: choose_embedding_scale().
///
/// Validation: once per epoch, but after at least 100 and at most 2,500 updates, so that decoding
/// the development set takes at most about a tenth of the time; checkpoints at the same interval
/// (choose_save_freq()), progress lines five times as often.
std::vector<Choice> choose(const CorpusSize& size, ModelSpec& model, DataSpec& data,
                           TrainSpec& train);

}  // namespace nmt::train
