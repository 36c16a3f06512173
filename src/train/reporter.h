#pragma once

#include "train/validator.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace nmt::train {

/// What a display line and the bar show of the updates since the last line.
struct Figures {
  Progress progress;
  /// by the stop rules; unknown without one or before the first update.
  std::optional<double> seconds_left;
  double seconds = 0;       ///< wall time of the training, over all runs
  double source_speed = 0;  ///< tokens a second, padding excluded, without validation and saving
  double target_speed = 0;
  double loss = 0;        ///< label-smoothed, nats a target token
  double perplexity = 0;  ///< exp of the cross-entropy a target token, </s> included
  double rate = 0;
  double norm = 0;  ///< mean of the updates' gradient norms, before clipping
};

/// Functions that are called with what a Reporter shows; each may be empty.
struct ProgressListener {
  std::function<void(const Figures&)> on_display;  ///< by disp-freq
  std::function<void(const Progress&, const ValidationResult&, bool best)> on_validation;
};

/// The voice of a training: a bar on a terminal, plain lines otherwise, and the same figures as
/// JSON lines in a file. Each line is one write to the file's end: a process killed at any moment
/// leaves at most its last line cut off.
class Reporter {
 public:
  /// Appends to `path`, without what a killed process left of a last line; "" writes no file. A
  /// file that cannot be written is told once and never stops a training.
  explicit Reporter(std::string path, ProgressListener listener = {});
  ~Reporter();
  Reporter(const Reporter&) = delete;

  void bar(const Figures& figures);  ///< at most four times a second, on a terminal only
  void display(const Figures& figures);
  void validation(const Progress& progress, const ValidationResult& result, bool best,
                  std::int64_t stalled, std::int64_t patience, double seconds);
  void saved(const Progress& progress, std::string_view reason, double seconds);
  /// A sentence of its own: start, resume, a skipped update, the end. `event` is its name in the
  /// JSON lines.
  void event(std::string_view event, const Progress& progress, std::string_view sentence,
             bool warning = false);
  /// A line of the file alone, with these members beside the progress.
  void record(std::string_view event, const Progress& progress,
              const nlohmann::ordered_json& members);

  /// Bytes of the file so far, all of them on the disk; kept in a checkpoint. -1 where none is
  /// written.
  std::int64_t position();
  /// Takes back what was told after that position and will be computed again: displays,
  /// validations, skipped updates and recoveries. -1: not known, nothing is taken back.
  void rewind(std::int64_t position);

 private:
  void close_with_warning();
  void append(const std::string& json);
  std::string path_;
  ProgressListener listener_;
  int file_ = -1;
  double last_bar_ = 0;
};

/// "1:02:03", "12:31" or "7 s".
std::string duration_text(double seconds);
/// "1,234,567"
std::string grouped(std::int64_t number);

}  // namespace nmt::train
