#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace nmt::serve {

using Clock = std::chrono::steady_clock;

/// Translations of a sentence, best first; at least one.
using Hypotheses = std::vector<std::string>;

/// What a Batcher hands its batches to. One thread calls it.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Translates sentences with a model; `n_best` asks for all hypotheses. Throws on failure.
  virtual std::vector<Hypotheses> translate(int model, bool n_best,
                                            std::span<const std::string> sentences) = 0;
  /// Called about once a second and between batches.
  virtual void tick() {}
};

/// How a job ended.
enum class JobStatus {
  done,
  expired,   ///< its deadline passed before all sentences were translated
  canceled,  ///< by BatchJob::canceled
  failed
};

/// The sentences of a request.
struct BatchJob {
  std::vector<int> route;  ///< models to pass through, at least one
  bool n_best = false;     ///< of the last model
  std::vector<std::string> sentences;
  Clock::time_point deadline;
  /// May become true at any time; null: cannot be canceled.
  std::shared_ptr<const std::atomic<bool>> canceled;
  /// Called once, in the thread of the batcher, with the hypotheses of each sentence if all are
  /// done, else with a message for the log. Must not throw.
  std::function<void(JobStatus, std::vector<Hypotheses>, std::string message)> finish;
};

struct BatcherOptions {
  std::size_t batch = 64;       ///< sentences per batch
  std::size_t capacity = 4096;  ///< sentences that wait or are in work
  std::chrono::microseconds latency_target{100'000};
};

/// Collects the sentences of all requests into batches for one engine.
///
/// A batch has sentences of one model, and models take turns. Where several jobs wait for a model,
/// each gets its share of a batch, so a long job does not block short ones. A batch that is not
/// full waits for more sentences until none has come for a millisecond, or until 4 ms have passed
/// and the oldest job, by the moving average of batch times, would miss the latency target.
class Batcher {
 public:
  Batcher(Engine& engine, const BatcherOptions& options);
  /// As stop().
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Takes a job with sentences. False: the queue is full, or the batcher is stopped; nothing was
  /// taken. A job of more sentences than the capacity is taken when nothing else waits.
  /// Thread-safe.
  bool submit(BatchJob job);
  /// Finishes the jobs taken so far and ends the thread.
  void stop();

  struct Statistics {
    std::uint64_t batches = 0, sentences = 0;
    std::uint64_t done = 0, expired = 0, canceled = 0, failed = 0;  ///< jobs
    std::size_t waiting = 0;                                        ///< sentences now
    double busy_seconds = 0;                                        ///< in the engine
  };
  Statistics statistics() const;
  /// Seconds until the present queue is done, by the speed so far; at least 1.
  int retry_after() const;

 private:
  struct Job {
    BatchJob job;
    Clock::time_point arrival;
    std::size_t stage = 0;    // of the route
    std::size_t next = 0;     // first sentence of the stage that is in no batch yet
    std::size_t pending = 0;  // sentences of the stage not yet translated
    std::vector<Hypotheses> results;
  };
  using Jobs = std::list<std::shared_ptr<Job>>;
  struct Unit {
    std::shared_ptr<Job> job;
    std::size_t sentence;
  };
  struct Key {
    int model;
    bool n_best;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const Job& job);

  void run();
  const Job& next_job() const;
  std::size_t waiting_units(Key key) const;
  void drop_dead_jobs(std::unique_lock<std::mutex>& lock);
  std::vector<Unit> take_batch(Key key);
  void translate(std::unique_lock<std::mutex>& lock, Key key, std::vector<Unit> units);
  /// False with a message: the engine failed.
  bool run_engine(std::unique_lock<std::mutex>& lock, Key key, std::span<const Unit> units,
                  std::string& message);
  void finish(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Job>& job, JobStatus status,
              const std::string& message);
  void store(std::unique_lock<std::mutex>& lock, std::span<const Unit> units,
             std::vector<Hypotheses> results);

  Engine& engine_;
  const BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Jobs jobs_;  // not finished, by arrival
  Clock::time_point last_arrival_, last_batch_end_;
  Key last_key_{-1, false};
  double batch_seconds_ = 0;  // moving average of the time of a full batch
  Statistics statistics_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace nmt::serve
