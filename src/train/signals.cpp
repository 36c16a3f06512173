#include "train/signals.h"

#include "core/files/temporary.h"

#include <array>
#include <atomic>
#include <cerrno>

#include <signal.h>
#include <unistd.h>

namespace nmt::train {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not lock");
std::atomic<bool> is_terminal{false};  // where Ctrl-C is pressed
constexpr char answer[] =
    "\nstopping after this update; Ctrl-C again stops at once, without the updates since the last "
    "checkpoint\n";
constexpr std::array handled = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
std::array<struct sigaction, handled.size()> old;
struct sigaction old_pipe;

void handle(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    const int error = errno;
    if (signal == SIGINT && is_terminal && ::write(STDERR_FILENO, answer, sizeof answer - 1) < 0) {
      // a terminal that is gone
    }
    errno = error;
    return;
  }
  if (signal != SIGINT) return;
  remove_own_temporaries();
  ::_exit(static_cast<int>(ExitStatus::interrupted));
}

}  // namespace

Signals::Signals() {
  first_signal = 0;
  is_terminal = ::isatty(STDERR_FILENO) == 1;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  for (std::size_t i = 0; i < handled.size(); ++i) {
    ::sigaction(handled[i], nullptr, &old[i]);
    const bool is_nohup = handled[i] == SIGHUP && old[i].sa_handler == SIG_IGN;
    if (!is_nohup) ::sigaction(handled[i], &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &old_pipe);
}

Signals::~Signals() {
  for (std::size_t i = 0; i < handled.size(); ++i) ::sigaction(handled[i], &old[i], nullptr);
  ::sigaction(SIGPIPE, &old_pipe, nullptr);
}

ExitStatus Signals::pending() {
  switch (first_signal.load()) {
    case SIGTERM:
    case SIGHUP:
    case SIGUSR1: return ExitStatus::terminated;
    case SIGINT: return ExitStatus::interrupted;
    default: return ExitStatus::ok;
  }
}

const char* Signals::name() {
  switch (first_signal.load()) {
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    case SIGUSR1: return "SIGUSR1";
    case SIGINT: return "SIGINT";
    default: return "";
  }
}

}  // namespace nmt::train
