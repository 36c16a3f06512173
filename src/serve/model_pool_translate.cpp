#include "core/error.h"
#include "serve/model_pool.h"
#include "tensor/device_lost.h"

#include <algorithm>
#include <utility>

// What ModelPool does in the threads of translate(); model_pool.cpp has the thread of the pool.

namespace nmt::serve {
namespace {

constexpr auto retry_interval = std::chrono::seconds(1);  // after a model could not be loaded

}  // namespace

// Whether a model is loaded or cannot be loaded; else the thread of the pool is told to load it.
bool ModelPool::can_begin(int model) {
  if (loaded_.contains(model)) return true;
  const auto failed = failures_.find(model);
  if (failed != failures_.end() && Clock::now() - failed->second.time < retry_interval) return true;
  const std::vector<ModelEntry>& entries = map_->entries();
  if (std::none_of(entries.begin(), entries.end(),
                   [&](const ModelEntry& entry) { return entry.id == model; }))
    return true;
  if (failed != failures_.end()) failures_.erase(failed);
  wanted_.insert(model);
  changed_.notify_all();
  return false;
}

bool ModelPool::is_ready(int model) {
  const std::lock_guard lock(mutex_);
  return can_begin(model);
}

ModelPool::LoadedPtr ModelPool::acquire(std::unique_lock<std::mutex>& lock, int model) {
  while (!can_begin(model)) changed_.wait(lock);
  const auto found = loaded_.find(model);
  if (found != loaded_.end()) return found->second;
  const auto failed = failures_.find(model);
  if (failed == failures_.end())
    fail(ExitStatus::failed, "the model of this direction was removed");
  fail(ExitStatus::failed, "{}", failed->second.message);
}

/// A lane of a loaded model, for one batch.
class ModelPool::Lease {
 public:
  Lease(ModelPool& pool, int model) : pool_(pool) {
    std::unique_lock lock(pool.mutex_);
    entry_ = pool.acquire(lock, model);
    pool.changed_.wait(lock, [&] { return !entry_->free_lanes.empty(); });
    lane_ = entry_->free_lanes.back();
    entry_->free_lanes.pop_back();
    entry_->last_use = Clock::now();
  }
  ~Lease() {
    const std::lock_guard lock(pool_.mutex_);
    entry_->free_lanes.push_back(lane_);
    entry_->last_use = Clock::now();
    pool_.count_text(*entry_);
    entry_.reset();  // before the thread of the pool looks
    pool_.changed_.notify_all();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  app::OpenTranslator& translator() { return *entry_->translator; }
  int lane() const { return lane_; }

 private:
  ModelPool& pool_;
  LoadedPtr entry_;
  int lane_ = 0;
};

void ModelPool::count_text(Loaded& entry) {
  const TextTranslator::Statistics& text = entry.translator->text_statistics();
  const auto add = [](std::atomic<std::int64_t>& total, std::int64_t& added, std::int64_t now) {
    total += now - std::exchange(added, now);
  };
  add(statistics_.in_parts, entry.in_parts, text.in_parts);
  add(statistics_.replaced, entry.replaced, text.replaced);
  add(statistics_.cut, entry.cut, text.cut);
}

std::vector<Hypotheses> ModelPool::translate(int model, Want want,
                                             std::span<const std::string> sentences,
                                             std::span<const std::span<const std::string>> before) {
  Lease lease(*this, model);
  app::OpenTranslator& open = lease.translator();
  LineTranslator& translator = want == Want::best   ? open.translator(lease.lane())
                               : want == Want::list ? open.n_best(lease.lane())
                                                    : open.aligned(lease.lane());
  std::vector<ContextSentences> contexts;
  if (const auto count = static_cast<std::size_t>(translator.options().context_sentences);
      count > 0)
    for (const auto& each : before) {
      const auto last = each.last(std::min(each.size(), count));
      contexts.emplace_back(last.begin(), last.end());
    }
  std::vector<LineTranslation> translations;
  try {
    translations = translator.translate(sentences, 1, contexts);
  } catch (const DeviceLost& error) {
    report_device_failure(error.what());
    throw;
  }
  open.trim(lease.lane());
  std::vector<Hypotheses> results;
  results.reserve(sentences.size());
  for (LineTranslation& line : translations) {
    Hypotheses& hypotheses = results.emplace_back();
    for (Output& output : line.outputs) {
      Hypothesis& hypothesis = hypotheses.emplace_back(std::move(output.text));
      for (const AlignmentPoint& point : output.alignment)
        hypothesis.alignment.emplace_back(point.source, point.target);
    }
  }
  return results;
}

}  // namespace nmt::serve
