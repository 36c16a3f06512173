#pragma once

#include "core/number_text.h"
#include "train/validator.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace nmt::train {

/// The figures of a progress line: updates since the last line.
struct Figures {
  Progress progress;
  /// estimate by the stop rules; unknown without one or before the first update.
  std::optional<double> seconds_left;
  double seconds = 0;       ///< wall time of the training, over all runs
  double source_speed = 0;  ///< tokens per second, without padding, validation and saving
  double target_speed = 0;
  double loss = 0;                  ///< label-smoothed loss, nats per target token
  std::optional<double> alignment;  ///< cost of guided alignment, nats per target token
  double perplexity = 0;            ///< exp of the cross-entropy per target token, including </s>
  double rate = 0;
  double norm = 0;  ///< mean gradient norm of the updates, before clipping
};

/// Callbacks for what a Reporter shows; each may be empty.
struct ProgressListener {
  std::function<void(const Figures&)> on_display;  ///< by disp-freq
  std::function<void(const Progress&, const ValidationResult&, bool best)> on_validation;
};

/// The output of a training: a progress bar on a terminal, plain lines otherwise, and the same
/// figures as JSON lines in a file. Each line is appended with one write, so a process killed at
/// any time truncates at most the last line.
class Reporter {
 public:
  /// Appends to `path`, after removing a truncated last line; "" writes no file. A write error is
  /// reported once and does not stop the training.
  explicit Reporter(std::string path, ProgressListener listener = {});
  ~Reporter();
  Reporter(const Reporter&) = delete;

  void bar(const Figures& figures);  ///< at most four times a second, on a terminal only
  void display(const Figures& figures);
  void validation(const Progress& progress, const ValidationResult& result, bool best,
                  std::int64_t stalled, std::int64_t patience, double seconds);
  void saved(const Progress& progress, std::string_view reason, double seconds);
  /// Reports an event with its own sentence: start, resume, a skipped update, the end. `event` is
  /// its name in the JSON lines.
  void event(std::string_view event, const Progress& progress, std::string_view sentence,
             bool warning = false);
  /// Writes a line to the file only, with these members and the progress.
  void record(std::string_view event, const Progress& progress,
              const nlohmann::ordered_json& members);

  /// Size of the file, synced to disk; stored in checkpoints. -1 without a file; if it
  /// cannot be written any more, the size of its whole lines.
  std::int64_t position();
  /// Removes displays, validations, skipped updates and recoveries written after that position,
  /// because they will be recomputed. -1: unknown, removes nothing.
  void rewind(std::int64_t position);

 private:
  void close_with_warning();
  void append(const std::string& json);
  std::string path_;
  ProgressListener listener_;
  int file_ = -1;
  std::int64_t end_ = -1;  // of the last whole line, once the file could not be written
  double last_bar_ = 0;
};

}  // namespace nmt::train
