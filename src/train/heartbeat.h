#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace nmt::train {

/// Breaks silences: while alive, a line (a status on a terminal) says what is going on and for how
/// long, whenever nothing was written for about five seconds.
class Heartbeat {
 public:
  explicit Heartbeat(std::string activity, double every = 4.5);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  /// What is going on from here on: "training the vocabulary". Its duration is said too, unless it
  /// moves by itself.
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
