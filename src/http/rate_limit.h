#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace nmt::http {

/// A token bucket for each client: `per_minute` requests at once, and as many per minute later.
/// Thread-safe. Memory is bounded: of more than 10,000 clients, those with full buckets are
/// forgotten, and when there are none of those, all.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  /// 0: no limit.
  explicit RateLimit(int per_minute) : per_minute_(per_minute) {}

  /// Takes a request into account. Returns 0, or the seconds after which the client may try again.
  int take(const std::string& client, Clock::time_point now = Clock::now());
  std::size_t clients() const;

 private:
  struct Bucket {
    double requests;
    Clock::time_point time;
  };
  double filled(const Bucket& bucket, Clock::time_point now) const;
  void forget(Clock::time_point now);

  const int per_minute_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace nmt::http
