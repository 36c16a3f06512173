#pragma once

#include "config/compute_spec.h"
#include "config/enums/model_enums.h"
#include "config/enums/search_enums.h"
#include "config/enums/train_enums.h"
#include "config/tasks/task_specs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nmt {

// Plain structs with defaults. Each has one list of options (fields.h), which serves YAML, the
// command line, --help, --dump-config and the copy stored in a model directory. Code below src/app
// sees neither YAML nor option text; values of a fixed set are enumerations. "chosen": nmt-train
// replaces 0, -1 or "" by a value for the corpus size and logs it; users write "auto".

/// Settings of an architecture of gated blocks (ResidualKind::pre_norm).
struct BlockSpec {
  EncoderMixer encoder_mixer{};
  EncoderDirections encoder_directions{};  ///< recurrent
  int encoder_heads = 8;                   ///< attention
  EncoderPositions encoder_positions{};    ///< attention
  GateBranch gate_branch{};                ///< of units
  bool unit_projection = true;             ///< of the outputs of units
  FeedForwardKind feed_forward{};
  std::optional<FeedForwardKind> decoder_feed_forward;  ///< none ("auto"): as feed_forward
  int feed_forward_width = 0;                           ///< 0: 4 E
  std::optional<EmbeddingScale> embedding_scale;        ///< none ("auto"): nmt-train takes sqrt
};

/// The largest ModelSpec::context_sentences.
inline constexpr int max_context_sentences = 16;

struct ModelSpec {
  Task task{};  ///< what the model is trained for
  /// Preceding source sentences in front of each source sentence (text/document_context.h).
  int context_sentences = 0;
  ModelType type{};              ///< architecture
  bool context_aware = false;    ///< conditional units over forward states and over the context
  std::string enc_cell = "lrn";  ///< unit of the encoder, a name of units.def
  std::string dec_cell = "lrn";  ///< unit of the decoder
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other) Enum member = Enum::usual;
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION
  /// elstm1, elstm2: rows of the position vectors; 0: max-length, or 1 in language models.
  int positions = 0;
  int state_heads = 0;     ///< matrix-state units: heads; 0: 4, or fewer that divide the width
  int state_width = 16;    ///< matrix-state units: K, numbers of the state per channel
  bool bias = false;       ///< bias on xW too (the recurrent product's bias is the unit's own)
  int groups = 1;          ///< K blocks in each unit's W and U; 1: dense
  bool rearrange = false;  ///< W and U read rows with the groups' channels interleaved
  int convolution = 0;  ///< K taps of a causal convolution of what recurrent layers read; 0: none
  bool dense_first_decoder_layer = false;  ///< groups everywhere else (GROUP, footnote 2)
  int dim_emb = 0;                         ///< E, chosen
  int dim_rnn = 0;                         ///< H, chosen
  int dim_enc_upper = 0;                   ///< width of encoder layers above the first; 0: H
  int enc_depth = 0;                       ///< layers, chosen
  int dec_depth = 0;                       ///< layers, chosen
  bool layer_normalization = true;
  AttentionType attention = AttentionType::additive;
  int heads = 1;
  int dim_attention = 0;                          ///< A; 0: the memory's width
  bool attention_projections = false;             ///< of values and outputs of the heads
  std::optional<AttentionQuery> attention_query;  ///< none ("auto"): the architecture's default
  int alignment_head = 0;                         ///< that alignments read, from 1; 0: their mean
  bool upper_context = true;                      ///< decoder layers above the first read c
  bool tied_embeddings = true;                    ///< target embedding = softmax weights
  bool tied_embeddings_src = false;               ///< source embedding = target embedding
  bool tied_embeddings_all = false;               ///< all three; needs a joint vocabulary
  double dropout_emb = -1.0;                      ///< on embeddings; -1: chosen
  double dropout_rnn = -1.0;                      ///< on layer outputs; -1: chosen
  double dropout_readout = -1.0;                  ///< -1: chosen
  double dropout_state = 0;                       ///< on what the recurrent products read
  /// One mask per sentence instead of one per step, for embeddings and layer outputs.
  bool dropout_variational = false;
  Initialization init = Initialization::standard;
  double init_scale = 0.0;            ///< 0: 0.08 for uniform, 0.01 for normal, else 1
  std::optional<GateInit> gate_init;  ///< none ("auto"): nmt-train takes usual_gate_init
  double gate_bias = 0.0;             ///< constant: X, the start of forget gates; 0: the unit's own
  int gate_steps = 30;                ///< chrono: T, the longest memory in tokens
  BlockSpec block;
  LanguageModelSpec language_model;
  TaggingSpec tagging;
  ClassificationSpec classification;
};

/// `gate-init: auto` of a new training.
inline constexpr GateInit usual_gate_init = GateInit::constant;
/// The unit that nmt-train chooses for translation models of small corpora (train::choose_unit()).
inline constexpr const char* small_corpus_unit = "gru";
/// From so many pairs on, a corpus is not small.
inline constexpr std::int64_t small_corpus_pairs = 500'000;

struct DataSpec {
  std::vector<std::string> train_sets;    ///< source, target
  std::string guided_alignment = "none";  ///< file of word links of the training pairs
  std::vector<std::string> valid_sets;  ///< source, target; empty: held out from the training files
  VocabularyKind vocab_type = VocabularyKind::sentencepiece;  ///< of learned vocabularies
  std::vector<std::string> vocabs;  ///< .spm files: none, one (joint) or two
  std::vector<int> dim_vocabs;      ///< sizes to train, chosen
  bool joint_vocab = true;          ///< one vocabulary for both sides when none is given
  std::int64_t sentencepiece_max_lines = 2000000;
  int max_length = 100;  ///< longer pairs are dropped and counted in the log
  LengthUnit max_length_unit = LengthUnit::pieces;
  bool max_length_crop = false;
  int mini_batch = 0;            ///< maximum sentences per batch; 0: no limit
  int mini_batch_words = 0;      ///< padded target tokens per batch, chosen
  int maxi_batch = 100;          ///< batches a length-sorted window
  std::int64_t valid_lines = 0;  ///< pairs to hold out, chosen
  std::uint64_t seed = 1234;
};

struct TrainSpec {
  std::string model = "model";  ///< the model directory
  UpdateRule optimizer = UpdateRule::adam;
  /// Parameters of the update rule; empty: the defaults in train/optimization/optimizer.h.
  std::vector<double> optimizer_params;
  double learn_rate = 0.0;  ///< chosen
  RateSchedule schedule = RateSchedule::inv_sqrt;
  std::string lr_warmup = "";          ///< units u e t, chosen
  std::string lr_decay_inv_sqrt = "";  ///< units u e t; empty: as lr_warmup
  double lr_decay = 0.0;               ///< factor of a decay step, 0: none
  DecayStrategy lr_decay_strategy = DecayStrategy::stalled;
  std::vector<int> lr_decay_start{10, 1};  ///< first epoch; stalled validations
  std::vector<double> rnmt_schedule{4, 500, 600000,
                                    1200000};  ///< n, p, s, e of RNMT+ (Chen et al. 2018)
  double lr_floor = 0.0;                       ///< lowest rate of schedule and decays; 0: none
  double lr_cooldown = 0.0;  ///< last share of the training, in which the rate falls to 0; 0: none
  CostType cost_type = CostType::ce_mean_words;
  double clip_norm = 5.0;  ///< 0: off
  double label_smoothing = 0.1;
  double guided_alignment_weight = 0.1;  ///< of the attention's cost; 0: off
  double exponential_smoothing = 0.0;    ///< weight of each update in the moving average; 0: off
  /// Validations without improvement after which the mean of all later weights is published; 0:
  /// off.
  int average_after = 0;
  int optimizer_delay = 1;      ///< batches per update
  std::string after = "";       ///< stop after: 10e, 100Ku, 1Gt, comma list; chosen
  double max_minutes = 0.0;     ///< wall time limit; 0: no limit
  std::string disp_freq = "";   ///< chosen
  std::string save_freq = "";   ///< chosen
  std::string valid_freq = "";  ///< chosen
  int keep_last = 5;
  int keep_best = 1;
  int early_stopping = 10;  ///< validations without improvement
  /// The first one selects the best checkpoint.
  std::vector<ValidMetric> valid_metrics{ValidMetric::bleu, ValidMetric::chrf,
                                         ValidMetric::cross_entropy, ValidMetric::perplexity};
  std::int64_t valid_max_sentences = 0;  ///< maximum sentences to translate; 0: all
  bool overwrite = false;                ///< replace an existing training (Marian's --no-reload)
  std::uint64_t seed = 1234;
};

struct SearchSpec {
  int beam_size = 4;
  double normalize = 0.0;          ///< Marian: score / length^A; excludes length_penalty
  double length_penalty = 0.6;     ///< GNMT: score / ((5+length)/6)^A (Wu et al. 2016, eq. 14)
  double coverage_penalty = 0.0;   ///< GNMT beta
  double max_length_factor = 3.0;  ///< longest output = factor * source tokens + offset
  int max_length_offset = 10;
  int max_length = 1000;  ///< longest source in tokens; longer lines are cropped with a warning
  bool allow_unk = false;
  bool n_best = false;
  AlignmentKind alignment = AlignmentKind::none;
  std::vector<std::string> shortlist;  ///< file, then numbers: search/beam/shortlist.h
  int mini_batch = 64;                 ///< sentences
  int maxi_batch = 100;                ///< batches a length-sorted window
  WindowOrder maxi_batch_sort = WindowOrder::source_length;
};

}  // namespace nmt
