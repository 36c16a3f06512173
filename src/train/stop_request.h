#pragma once

#include "core/error.h"

#include <functional>
#include <utility>

namespace nmt::train {

/// Whether a training is asked to save and end: by a signal (Signals), or by its caller.
class StopRequest {
 public:
  /// `asked` is called between batches, on the thread that trains; empty: signals alone count.
  explicit StopRequest(std::function<bool()> asked = {}) : asked_(std::move(asked)) {}

  /// ok: go on; else terminated or interrupted, as Signals::pending(). A caller's request counts as
  /// an interrupt.
  ExitStatus pending() const;
  /// What asked for that end: "SIGTERM", "SIGINT" or "stop request".
  const char* reason(ExitStatus pending) const;

 private:
  std::function<bool()> asked_;
};

}  // namespace nmt::train
