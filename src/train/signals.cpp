#include "nmt/train/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace nmt::train {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not lock");
struct sigaction old_term, old_int;

void handle(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) return;
  if (signal == SIGINT) ::_exit(static_cast<int>(ExitStatus::interrupted));
}

}  // namespace

Signals::Signals() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, &old_term);
  ::sigaction(SIGINT, &action, &old_int);
}

Signals::~Signals() {
  ::sigaction(SIGTERM, &old_term, nullptr);
  ::sigaction(SIGINT, &old_int, nullptr);
}

ExitStatus Signals::pending() {
  switch (first_signal.load()) {
    case SIGTERM:
      return ExitStatus::terminated;
    case SIGINT:
      return ExitStatus::interrupted;
    default:
      return ExitStatus::ok;
  }
}

}  // namespace nmt::train
