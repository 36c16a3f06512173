#pragma once

#include "config/specs.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::train {

/// What the choices depend on: the training part of the corpus, development pairs excluded.
struct CorpusSize {
  std::int64_t pairs = 0;
  std::int64_t target_bytes = 0;
};

struct Choice {
  std::string name, value;  ///< as on the command line
  std::string why;
};

/// Pairs to hold out for development when there is no development set: a twentieth, at least 10 (a
/// corpus below 20 gives half), at most 1,000, whose BLEU has a 95% interval of about +-1.5.
std::int64_t held_out_pairs(std::int64_t pairs);

/// Sets `positions` to max-length where it is not set and a unit trains a vector of each position;
/// returns whether it did.
bool choose_positions(ModelSpec& model, const DataSpec& data);

/// One table for both embeddings and the softmax where one vocabulary serves both sides (Press &
/// Wolf, EACL 2017): every piece is then trained by all three, with a third of their weights.
/// Returns whether it did. For settings that say nothing of tying.
bool choose_tying(ModelSpec& model, const DataSpec& data);

/// Puts what `attention-query: auto` means in its place; returns whether it did. Without attention
/// it stays.
bool choose_attention_query(ModelSpec& model);

/// Fills what is not set (0, "", empty, or -1 for dropout) in the specs and says what was chosen
/// and why. One row of a table by corpus size:
///
/// pairs below  width depth vocabulary words  dropout learn-rate warm-up epochs
///        5,000   128   1+1      1,000  1024      0.2     0.003    100u     60
///       20,000   256   1+1      4,000  2048      0.3     0.002    200u     40
///      100,000   256   2+2      8,000  4096      0.3     0.002    400u     30
///      500,000   512   2+2     16,000  4096      0.2     0.001   1000u     20
///    2,000,000   512   3+3     24,000  8192      0.1     0.001   4000u     10
///       beyond  1024   4+4     32,000 16384      0.1    0.0005   8000u      5
///
/// - Width and depth: weights grow with the text that can fill them; a wider model than that learns
/// the training text by
///   heart, and on a CPU the time of an epoch grows with the square of the width.
/// - Vocabulary: a piece should be seen some hundred times in training, or its embedding stays near
/// its random start (Gowda &
///   May 2020: a corpus of 30,000 sentences is best with 8,000 pieces or fewer, one of 4.5 million
///   with 32,000).
/// - Words (padded target tokens a batch): some hundred updates an epoch; larger batches cost
/// updates, smaller ones waste the
///   matrix products on narrow operands.
/// - Dropout: the smaller the text, the more (Sennrich & Zhang 2019).
/// - Learning rate: that of the table for adam and adamw, else the optimizer's usual one
/// (optimizer.h).
/// - Warm-up: two to four epochs of a small corpus; Adam's second moments need a few hundred
/// updates before they can be trusted. None for other optimizers,
///   so that their rate is constant but for lr-decay.
/// - Epochs: a bound; early stopping mostly comes first.
/// - Positions: choose_positions(). Attention-query: choose_attention_query().
/// Validation: once an epoch, but not below 100 and not above 2,500 updates, so that decoding the
/// development set takes at most about a tenth of the time; as often a checkpoint, and a display
/// line five times as often.
std::vector<Choice> choose(const CorpusSize& size, ModelSpec& model, DataSpec& data,
                           TrainSpec& train);

}  // namespace nmt::train
