#include "http/rate_limit.h"

#include <algorithm>
#include <cmath>

namespace nmt::http {
namespace {
constexpr std::size_t max_clients = 10'000;
}

double RateLimit::filled(const Bucket& bucket, Clock::time_point now) const {
  const double minutes = std::chrono::duration<double>(now - bucket.time).count() / 60.0;
  return std::min<double>(per_minute_, bucket.requests + minutes * per_minute_);
}

void RateLimit::forget(Clock::time_point now) {
  std::erase_if(buckets_,
                [&](const auto& each) { return filled(each.second, now) >= per_minute_; });
  if (buckets_.size() >= max_clients) buckets_.clear();
}

int RateLimit::take(const std::string& client, Clock::time_point now) {
  if (per_minute_ == 0) return 0;
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= max_clients && !buckets_.contains(client)) forget(now);
  Bucket& bucket =
      buckets_.try_emplace(client, Bucket{static_cast<double>(per_minute_), now}).first->second;
  bucket = {filled(bucket, now), now};
  if (bucket.requests >= 1) {
    bucket.requests -= 1;
    return 0;
  }
  constexpr double rounding = 1e-6;
  const double seconds = (1 - bucket.requests) * 60.0 / per_minute_;
  return std::max(1, static_cast<int>(std::ceil(seconds - rounding)));
}

std::size_t RateLimit::clients() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

}  // namespace nmt::http
