#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace nmt::train {

/// While it exists, logs the current activity and its duration (as a status on a terminal) whenever
/// nothing was written for about five seconds.
class Heartbeat {
 public:
  explicit Heartbeat(std::string activity, double every = 4.5);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  /// Sets the activity, for example "training the vocabulary". `timed`: show its duration, unless
  /// the text itself shows progress.
  void activity(std::string text, bool timed = true);

 private:
  void run();
  const double every_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string activity_;
  double since_ = 0;
  bool timed_ = true, stop_ = false;
  std::thread thread_;
};

}  // namespace nmt::train
