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
#include <utility>
#include <vector>

namespace nmt::serve {

using Clock = std::chrono::steady_clock;

/// A translation of a sentence.
struct Hypothesis {
  Hypothesis(std::string text_ = "") : text(std::move(text_)) {}
  Hypothesis(const char* text_) : text(text_) {}
  bool operator==(const Hypothesis&) const = default;

  std::string text;
  /// Positions of linked words in the sentence and in the text, split at white space.
  std::vector<std::pair<int, int>> alignment;
};

/// Translations of a sentence, best first; at least one.
using Hypotheses = std::vector<Hypothesis>;

/// What is wanted of a sentence.
enum class Want {
  best,
  list,    ///< all hypotheses
  aligned  ///< all hypotheses with their alignments, where they are known
};

/// What a Batcher hands its batches to. All members are thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Translates sentences with a model. `before`: for each, the sentences before it in its
  /// document, for models that read context. Throws on failure.
  virtual std::vector<Hypotheses> translate(
      int model, Want want, std::span<const std::string> sentences,
      std::span<const std::span<const std::string>> before) = 0;
  /// Whether translate() can begin at once. False: the model is being loaded; the listener will be
  /// called. Returns quickly.
  virtual bool is_ready(int /*model*/) { return true; }
  /// Whether translations have the text between the markers <keep> and </keep>, without these.
  virtual bool keeps_marked() const { return false; }
  /// Called from any thread when is_ready() may have changed; empty: nobody listens.
  virtual void listen(std::function<void()> /*listener*/) {}
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
  Want want = Want::best;  ///< of the last model
  std::vector<std::string> sentences;
  /// For each sentence, the index of the first one of its document; none: all are one document.
  std::vector<std::size_t> documents = {};
  Clock::time_point deadline;
  /// May become true at any time; null: cannot be canceled.
  std::shared_ptr<const std::atomic<bool>> canceled;
  /// Called once, in a thread of the batcher, with the hypotheses of each sentence if all are
  /// done, else with a message for the log. Must not throw.
  std::function<void(JobStatus, std::vector<Hypotheses>, std::string message)> finish;
};

struct BatcherOptions {
  std::size_t batch = 64;       ///< sentences per batch
  std::size_t capacity = 4096;  ///< sentences that wait or are in work
  std::chrono::microseconds latency_target{100'000};
  int threads = 1;  ///< batches at a time
};

/// Collects the sentences of all requests into batches for one engine.
///
/// Each thread takes the next batch as soon as it is free. Idle threads share the sentences that
/// wait; batches that take longer than half the latency target are only made of a long queue. A
/// batch has sentences of one model, and models take turns; a model that is being loaded is left
/// out. A later model of a route gets the markers of the sentences again, if the engine keeps
/// marked text. Where several jobs wait for a model, each gets its share of a batch, so a long job
/// does not block short ones. A batch that is not full waits for more sentences until none has come
/// for a millisecond, or until 4 ms have passed and the oldest job, by the moving average of batch
/// times, would miss the latency target.
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
  /// Cancels the jobs taken so far, but for the batches that are being translated.
  void abandon();
  /// Finishes the jobs taken so far and ends the threads.
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
    bool finished = false;
    std::vector<Hypotheses> results;
  };
  using Jobs = std::list<std::shared_ptr<Job>>;
  struct Unit {
    std::shared_ptr<Job> job;
    std::size_t sentence;
  };
  struct Key {
    int model;
    Want want;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const Job& job);

  void run();
  /// The job that the next batch begins with; null: none waits for a batch.
  const Job* next_job() const;
  std::size_t waiting_units(Key key) const;
  std::size_t batch_size(Key key) const;
  std::size_t quick_batch() const;
  Clock::time_point next_deadline() const;
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
  Key last_key_{-1, Want::best};
  double batch_seconds_ = 0;     // moving average of the time of a full batch
  double sentence_seconds_ = 0;  // moving average of the time of a batch per sentence
  Statistics statistics_;
  int idle_ = 0;  // threads without a batch
  bool stopping_ = false, abandoned_ = false, ended_ = false;
  std::vector<std::thread> threads_;
  std::thread watch_;  // ends jobs that are late while all threads are busy
};

}  // namespace nmt::serve
