#include "serve/batcher.h"

#include "core/error.h"
#include "serve/marked_spans.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

namespace nmt::serve {
namespace {

constexpr auto quiet = std::chrono::milliseconds(1);  // without arrivals, a batch starts
// Clients whose answers have just been sent may send their next requests meanwhile.
constexpr auto collect = std::chrono::milliseconds(4);
constexpr auto longest_wait = std::chrono::seconds(1);  // between looks for canceled jobs
constexpr std::size_t small_batch = 8;                  // is much slower per sentence
constexpr double newest_weight = 0.2;                   // of the moving average

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Batcher::Batcher(Engine& engine, const BatcherOptions& options)
    : engine_(engine), options_(options) {
  idle_ = std::max(options.threads, 1);
  engine_.listen([this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  for (int i = 0; i < std::max(options.threads, 1); ++i) threads_.emplace_back([this] { run(); });
  watch_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      drop_dead_jobs(lock);
      if (!ended_) changed_.wait_until(lock, next_deadline());
    }
  });
}

Batcher::~Batcher() {
  stop();
}

void Batcher::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
}

void Batcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
  engine_.listen(nullptr);
}

bool Batcher::submit(BatchJob job) {
  NMT_CHECK(!job.route.empty() && !job.sentences.empty(), "a job without a route or sentences");
  NMT_CHECK(job.documents.empty() || job.documents.size() == job.sentences.size(),
            "a job of {} sentences with documents of {}", job.sentences.size(),
            job.documents.size());
  const std::lock_guard lock(mutex_);
  const std::size_t count = job.sentences.size();
  if (stopping_ || (statistics_.waiting > 0 && statistics_.waiting + count > options_.capacity))
    return false;
  auto added = std::make_shared<Job>();
  added->job = std::move(job);
  added->arrival = last_arrival_ = Clock::now();
  added->pending = count;
  added->results.resize(count);
  statistics_.waiting += count;
  jobs_.push_back(std::move(added));
  changed_.notify_all();
  return true;
}

Batcher::Statistics Batcher::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

int Batcher::retry_after() const {
  const std::lock_guard lock(mutex_);
  const double per_sentence =
      batch_seconds_ / static_cast<double>(std::max<std::size_t>(options_.batch, 1));
  constexpr double most = 3600;
  return static_cast<int>(
      std::ceil(std::clamp(per_sentence * static_cast<double>(statistics_.waiting), 1.0, most)));
}

Batcher::Key Batcher::key_of(const Job& job) {
  const bool is_last = job.stage + 1 == job.job.route.size();
  return {job.job.route[job.stage], is_last ? job.job.want : Want::best};
}

std::size_t Batcher::waiting_units(Key key) const {
  std::size_t count = 0;
  for (const auto& job : jobs_)
    if (key_of(*job) == key) count += job->job.sentences.size() - job->next;
  return count;
}

// The oldest job, but of another key than the last batch where such a job waits.
const Batcher::Job* Batcher::next_job() const {
  const Job* oldest = nullptr;
  std::vector<int> loading;
  for (const auto& job : jobs_) {
    if (job->next == job->job.sentences.size()) continue;
    const Key key = key_of(*job);
    if (oldest && key == last_key_) continue;
    if (std::find(loading.begin(), loading.end(), key.model) != loading.end()) continue;
    if (!engine_.is_ready(key.model)) {
      loading.push_back(key.model);
      continue;
    }
    if (!(key == last_key_)) return job.get();
    oldest = job.get();
  }
  return oldest;
}

// Idle threads share what waits, in batches that are not small. As long as two quick batches of
// each thread are enough for all sentences, batches are quick ones: a sentence that comes while all
// threads are busy waits for the rest of one batch and for its own. With more sentences, larger
// batches finish all of them sooner.
std::size_t Batcher::batch_size(Key key) const {
  const std::size_t idle = static_cast<std::size_t>(std::max(idle_, 1));
  const std::size_t share = (waiting_units(key) + idle - 1) / idle, quick = quick_batch();
  std::size_t size = std::max(share, small_batch);
  if (statistics_.waiting <= 2 * quick * static_cast<std::size_t>(std::max(options_.threads, 1)))
    size = std::min(size, quick);
  return std::min(options_.batch, size);
}

// Sentences that one thread translates in half the latency target.
std::size_t Batcher::quick_batch() const {
  const double half = seconds(options_.latency_target) / 2;
  const double most = static_cast<double>(options_.batch);
  if (half >= most * sentence_seconds_) return options_.batch;
  return std::max(static_cast<std::size_t>(half / sentence_seconds_), small_batch);
}

Clock::time_point Batcher::next_deadline() const {
  Clock::time_point first = Clock::now() + longest_wait;
  for (const auto& job : jobs_) first = std::min(first, job->job.deadline);
  return first;
}

// Ends jobs that are too late or that nobody waits for.
void Batcher::drop_dead_jobs(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point now = Clock::now();
  std::vector<std::pair<std::shared_ptr<Job>, JobStatus>> dead;
  for (const auto& job : jobs_) {
    if (abandoned_ || (job->job.canceled && *job->job.canceled))
      dead.emplace_back(job, JobStatus::canceled);
    else if (job->job.deadline <= now)
      dead.emplace_back(job, JobStatus::expired);
  }
  for (const auto& [job, status] : dead) finish(lock, job, status, "");
}

// Oldest jobs first, each at most its share; then what still fits, again oldest first.
std::vector<Batcher::Unit> Batcher::take_batch(Key key) {
  std::vector<std::shared_ptr<Job>> waiting;
  for (const auto& job : jobs_)
    if (key_of(*job) == key && job->next < job->job.sentences.size()) waiting.push_back(job);
  if (waiting.empty()) return {};
  const std::size_t size = batch_size(key);
  const std::size_t share = std::max<std::size_t>(size / waiting.size(), 1);
  std::vector<Unit> units;
  for (const std::size_t most : {share, size})
    for (const auto& job : waiting)
      for (std::size_t taken = 0;
           taken < most && units.size() < size && job->next < job->job.sentences.size(); ++taken)
        units.push_back({job, job->next++});
  return units;
}

void Batcher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    drop_dead_jobs(lock);
    const Job* const first = next_job();
    if (!first) {
      if (stopping_ && jobs_.empty()) return;
      changed_.wait_until(lock, next_deadline());
      continue;
    }
    const Key key = key_of(*first);
    const Clock::time_point arrival = first->arrival;  // the job may end while this thread waits
    const auto slack = std::max<Clock::duration>(
        options_.latency_target - std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(batch_seconds_)),
        Clock::duration::zero());
    const Clock::time_point latest =
        std::max(arrival + slack, std::max(arrival, last_batch_end_) + collect);
    while (!stopping_ && waiting_units(key) < options_.batch) {
      const Clock::time_point until =
          std::min(latest, std::max(last_arrival_, last_batch_end_) + quiet);
      if (Clock::now() >= until) break;
      changed_.wait_until(lock, until);
    }
    std::vector<Unit> units = take_batch(key);
    if (units.empty()) continue;  // another thread was faster
    last_key_ = key;
    --idle_;
    translate(lock, key, std::move(units));
    ++idle_;
    last_batch_end_ = Clock::now();
  }
}

bool Batcher::run_engine(std::unique_lock<std::mutex>& lock, Key key, std::span<const Unit> units,
                         std::string& message) {
  std::vector<std::string> sentences;
  // The sentences of a job stay as they are until all of its stage are translated.
  std::vector<std::span<const std::string>> before;
  std::vector<bool> goes_on;  // to another model
  for (const auto& [job, sentence] : units) {
    const BatchJob& of = job->job;
    const std::size_t begin = of.documents.empty() ? 0 : of.documents[sentence];
    sentences.push_back(of.sentences[sentence]);
    before.push_back(std::span(of.sentences).subspan(begin, sentence - begin));
    goes_on.push_back(job->stage + 1 < of.route.size());
  }
  lock.unlock();
  std::vector<Hypotheses> results;
  const Clock::time_point begin = Clock::now();
  try {
    results = engine_.translate(key.model, key.want, sentences, before);
    NMT_CHECK(results.size() == units.size(), "{} translations of {} sentences", results.size(),
              units.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!goes_on[i] || !engine_.keeps_marked()) continue;
      std::string& text = results[i].front().text;
      text = with_markers(sentences[i], std::move(text));
    }
  } catch (const std::exception& error) {
    results.clear();
    message = error.what();
  }
  const double time = seconds(Clock::now() - begin);
  lock.lock();
  ++statistics_.batches;
  statistics_.sentences += units.size();
  statistics_.busy_seconds += time;
  const double per_sentence = time / static_cast<double>(std::max<std::size_t>(units.size(), 1));
  sentence_seconds_ +=
      (sentence_seconds_ == 0 ? 1.0 : newest_weight) * (per_sentence - sentence_seconds_);
  // Small batches take more time per sentence than full ones.
  const std::size_t counted = std::max<std::size_t>({units.size(), options_.batch / 4, 1});
  const double full = time * static_cast<double>(options_.batch) / static_cast<double>(counted);
  batch_seconds_ += (batch_seconds_ == 0 ? 1.0 : newest_weight) * (full - batch_seconds_);
  if (results.empty()) return false;
  store(lock, units, std::move(results));
  return true;
}

void Batcher::translate(std::unique_lock<std::mutex>& lock, Key key, std::vector<Unit> units) {
  std::string message;
  if (run_engine(lock, key, units, message)) return;
  // A sentence of one job must not fail the others: each job is tried on its own.
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.job.get() < b.job.get(); });
  for (std::size_t begin = 0, end = 0; begin < units.size(); begin = end) {
    while (end < units.size() && units[end].job == units[begin].job) ++end;
    const bool is_alone = end - begin == units.size();
    if (is_alone ||
        !run_engine(lock, key, std::span<const Unit>(units).subspan(begin, end - begin), message))
      finish(lock, units[begin].job, JobStatus::failed, message);
  }
}

void Batcher::store(std::unique_lock<std::mutex>& lock, std::span<const Unit> units,
                    std::vector<Hypotheses> results) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::shared_ptr<Job>& job = units[i].job;
    if (job->finished) continue;  // another of its batches failed
    job->results[units[i].sentence] = std::move(results[i]);
    if (--job->pending > 0) continue;
    if (++job->stage == job->job.route.size()) {
      finish(lock, job, JobStatus::done, "");
      continue;
    }
    for (std::size_t k = 0; k < job->results.size(); ++k)
      job->job.sentences[k] = std::move(job->results[k].front().text);
    job->next = 0;
    job->pending = job->results.size();
    changed_.notify_all();
  }
}

void Batcher::finish(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Job>& job,
                     JobStatus status, const std::string& message) {
  const auto found = std::find(jobs_.begin(), jobs_.end(), job);
  if (found == jobs_.end()) return;
  const std::shared_ptr<Job> kept = *found;
  kept->finished = true;
  jobs_.erase(found);
  if (stopping_ && jobs_.empty()) changed_.notify_all();
  statistics_.waiting -= kept->job.sentences.size();
  switch (status) {
    case JobStatus::done: ++statistics_.done; break;
    case JobStatus::expired: ++statistics_.expired; break;
    case JobStatus::canceled: ++statistics_.canceled; break;
    case JobStatus::failed: ++statistics_.failed; break;
  }
  lock.unlock();
  if (status != JobStatus::done) kept->results.clear();
  kept->job.finish(status, std::move(kept->results), message);
  lock.lock();
}

}  // namespace nmt::serve
