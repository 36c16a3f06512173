#include "train/stop_request.h"

#include "train/signals.h"

namespace nmt::train {

ExitStatus StopRequest::pending() const {
  const ExitStatus signal = Signals::pending();
  if (signal != ExitStatus::ok) return signal;
  return asked_ && asked_() ? ExitStatus::interrupted : ExitStatus::ok;
}

const char* StopRequest::reason(ExitStatus pending) const {
  if (Signals::pending() == pending) return Signals::name();
  if (pending == ExitStatus::terminated) return "SIGTERM";  // of another rank
  return asked_ && Signals::pending() == ExitStatus::ok ? "stop request" : "SIGINT";
}

}  // namespace nmt::train
