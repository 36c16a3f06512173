#pragma once

#include "core/error.h"

namespace nmt::train {

/// While it exists, SIGTERM, SIGHUP (a closed terminal), SIGUSR1 (sent by mpirun and Slurm) and
/// SIGINT only set a flag, so that the training can save and exit. A second SIGINT exits
/// immediately with status 130; on a terminal, the first one is answered at once. SIGHUP stays
/// ignored where it was (nohup). SIGPIPE is ignored, so that the training goes on when the program
/// that reads its log exits. At most one object per process.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  /// ExitStatus::ok before any signal, else terminated (SIGTERM, SIGHUP, SIGUSR1) or interrupted
  /// (SIGINT), by the first signal.
  static ExitStatus pending();
  /// The name of the first signal; "" before any.
  static const char* name();
};

}  // namespace nmt::train
