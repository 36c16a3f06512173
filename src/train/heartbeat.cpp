#include "train/heartbeat.h"

#include "core/log.h"

#include <chrono>

namespace nmt::train {
namespace {
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

Heartbeat::Heartbeat(std::string activity, double every)
    : every_(every), activity_(std::move(activity)), since_(now()), thread_([this] { run(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Heartbeat::activity(std::string text, bool timed) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(text);
  timed_ = timed;
  since_ = now();
}

void Heartbeat::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(static_cast<int>(every_ * 1000 / 9)),
                         [this] { return stop_; })) {
    if (log::seconds_since_last_write() < every_) continue;
    const std::string text =
        timed_ ? fmt::format("... {}: {:.0f} s", activity_, now() - since_) : "... " + activity_;
    if (log::on_terminal()) {
      log::status(text);
    } else {
      log::info("{}", text);
    }
  }
}

}  // namespace nmt::train
