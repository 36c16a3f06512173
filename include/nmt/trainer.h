#pragma once

#include "nmt/settings.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nmt {

/// Options of train_model(). A member that keeps its default counts as not set; the defaults are
/// those of nmt-train, which chooses a value where the default is 0 or "".
struct TrainOptions {
  std::vector<std::string> train_sets = {};  ///< source and target file, one sentence per line
  std::vector<std::string> valid_sets = {};  ///< source and target file; empty: held out
  std::vector<std::string> vocabs = {};      ///< .spm files: none, one (joint) or two
  std::vector<int> dim_vocabs = {};          ///< pieces to train: one number (joint) or two
  std::string model = "model";               ///< the model directory; a training there is resumed
  std::string unit = {};                     ///< of encoder and decoder: "lrn", "gru", "lstm", ...
  int dim_emb = 0;                           ///< width of embeddings
  int dim_rnn = 0;                           ///< width of recurrent layers
  int enc_depth = 0;                         ///< layers
  int dec_depth = 0;                         ///< layers
  double learn_rate = 0;                     ///< at its peak
  int mini_batch_words = 0;                  ///< padded target tokens per batch
  std::string after = {};  ///< stop after epochs, updates or target tokens: "10e", "100Ku", "1Gt"
  std::string disp_freq = {};      ///< how often progress is reported: "100u"
  std::string valid_freq = {};     ///< how often the model is validated and saved: "1Ku"
  int early_stopping = 10;         ///< validations without improvement; 0: never
  std::uint64_t seed = 1234;       ///< at least 1
  std::string device = "cpu";      ///< "cpu", "cuda", "cuda:N" or "auto"
  int cpu_threads = 0;             ///< 0: all processors
  std::string precision = "auto";  ///< "auto", "float32", "bfloat16", or on a GPU "tf32"
  Settings settings = {};          ///< any other option of nmt-train
};

/// Progress of a training.
struct TrainProgress {
  std::int64_t updates = 0;
  std::int64_t target_tokens = 0;  ///< trained on, </s> included
  double epochs = 0;               ///< with the fraction of the present one
  /// Label-smoothed cross-entropy minus the entropy of the smoothed labels, in nats per target
  /// token, since the last report; 0 is the best that a model can reach.
  double loss = 0;
  double perplexity = 0;  ///< exp of the cross-entropy per target token, since then
  double learn_rate = 0;
  double target_tokens_per_second = 0;
  double seconds = 0;                  ///< wall time over all runs
  std::optional<double> seconds_left;  ///< estimated from the stopping rules
};

/// The result of a validation.
struct Validation {
  std::int64_t updates = 0;
  double epochs = 0;
  std::vector<std::pair<std::string, double>> metrics;  ///< BLEU and chrF: 0 to 100
  bool best = false;                                    ///< the first metric is the best so far
};

/// Callbacks of a training, which run in the thread that called train_model(). Returning false
/// stops the training after the current update: it saves a checkpoint, and the next train_model()
/// with the same options resumes from it. Exceptions pass through train_model(); nothing is saved
/// then.
struct TrainCallbacks {
  std::function<bool(const TrainProgress&)> on_progress = {};  ///< every disp_freq
  std::function<bool(const Validation&)> on_validation = {};   ///< every valid_freq
  /// Returns true to stop, as on_progress does with false. Called after each update, and after
  /// each batch of a validation.
  std::function<bool()> should_stop = {};
};

/// Result of a training.
struct TrainResult {
  bool finished = false;  ///< true: a stopping rule applied; false: a callback stopped it
  std::int64_t updates = 0;
  std::string best_metric;       ///< first of valid-metrics, "" before the first validation
  std::optional<double> best;    ///< its best value
  std::int64_t best_update = 0;  ///< of `best`
};

/// Trains a model on two parallel files, or resumes the training in the model directory. Computes
/// what nmt-train computes with the same options, bit for bit. Blocks until the training is over.
///
/// Thread safety: one training at a time in a process. Signals are left to the application; a
/// handler can set a flag that a callback reads.
///
/// Errors (usage): unknown options, values out of range or that contradict each other, missing
/// files, no such device; (data): damaged files, no text; (failed): a file cannot be written;
/// (memory): std::bad_alloc or OutOfMemory.
TrainResult train_model(const TrainOptions& options, const TrainCallbacks& callbacks = {});

}  // namespace nmt
