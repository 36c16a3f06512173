#pragma once

#include "serve/batcher.h"
#include "serve/model_pool.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace nmt::http {

/// What the server counts. Paths are those of the API, so the number of series is bounded; neither
/// texts nor addresses are kept. Thread-safe.
class Metrics {
 public:
  void count_request(const std::string& path, int status, double seconds);
  void count_text(std::size_t texts, std::size_t characters) {
    texts_ += texts;
    characters_ += characters;
  }
  std::atomic<std::int64_t> connections{0};          ///< open now
  std::atomic<std::int64_t> refused_connections{0};  ///< more than --max-connections
  std::atomic<std::int64_t> pending_bytes{0};        ///< of request bodies now

  /// Prometheus' text format 0.0.4.
  std::string text(const serve::Batcher::Statistics& batcher,
                   const serve::ModelPool::Statistics& pool) const;

 private:
  static constexpr std::array<double, 12> bounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.2,
                                                 0.5,   1,    2,     5,    10,  30};
  struct Durations {
    std::array<std::uint64_t, bounds.size() + 1> counts{};
    double sum = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;  // by path and status
  std::map<std::string, Durations> durations_;                     // by path
  std::atomic<std::uint64_t> texts_{0}, characters_{0};
};

}  // namespace nmt::http
