#pragma once

#include "core/error.h"

#include <functional>
#include <utility>

namespace nmt::train {

/// A request to save and stop a training, by a signal (Signals) or by its caller.
class StopRequest {
 public:
  /// `asked` is called between batches, by one thread at a time; empty: only signals count.
  explicit StopRequest(std::function<bool()> asked = {}) : asked_(std::move(asked)) {}

  /// ok: continue; else terminated or interrupted, as Signals::pending(). A request by the caller
  /// counts as an interrupt.
  ExitStatus pending() const;
  /// The origin of the request: the name of a signal, or "stop request".
  const char* reason(ExitStatus pending) const;

 private:
  std::function<bool()> asked_;
};

}  // namespace nmt::train
