#pragma once

#include "core/error.h"

namespace nmt::train {

/// While alive, SIGTERM, SIGUSR1 (which mpirun and Slurm pass on at once) and SIGINT only raise a
/// flag, so that the training can save and leave; a second SIGINT leaves at once with status 130.
/// One at a time in a process.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  /// ExitStatus::ok while nothing came, else terminated (SIGTERM, SIGUSR1) or interrupted (SIGINT),
  /// whichever came first.
  static ExitStatus pending();
};

}  // namespace nmt::train
