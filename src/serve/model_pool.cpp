#include "serve/model_pool.h"

#include "core/error.h"
#include "core/log.h"
#include "serve/model_version.h"
#include "tensor/device_lost.h"
#include "text/glossary.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include <malloc.h>

namespace nmt::serve {
namespace {

constexpr auto tick_interval = std::chrono::seconds(1);

std::string key_of(const Direction& direction) {
  return direction.source + " " + direction.target;
}

// The glossaries by key_of() their directions. Errors: as the constructor of ModelPool.
std::map<std::string, std::string> parse_glossaries(const std::vector<std::string>& words,
                                                    const std::vector<ModelEntry>& entries) {
  std::map<std::string, std::string> glossaries;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    Direction direction;
    if (equals == std::string::npos || !parse_direction(word.substr(0, equals), direction))
      fail(ExitStatus::usage, "glossaries: '{}': expected LANGUAGES=FILE, for example en-de=FILE",
           word);
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const ModelEntry& entry) { return entry.direction == direction; }))
      fail(ExitStatus::usage, "glossaries: '{}': no model translates {} to {}", word,
           direction.source, direction.target);
    const std::string file = word.substr(equals + 1);
    Glossary::load(file);
    const auto [glossary, is_new] = glossaries.emplace(key_of(direction), file);
    if (!is_new)
      fail(ExitStatus::usage, "glossaries: {} and {} both belong to {} to {}; keep one of them",
           glossary->second, file, direction.source, direction.target);
  }
  return glossaries;
}

}  // namespace

ModelPool::ModelPool(const ModelPoolOptions& options)
    : options_(options),
      map_(std::make_shared<const ModelMap>(find_models(false))),
      next_id_(static_cast<int>(map_->entries().size())),
      last_check_(Clock::now()) {
  glossaries_ = parse_glossaries(options.glossaries, map_->entries());
  thread_ = std::thread([this] { run(); });
}

ModelPool::~ModelPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<const ModelMap> ModelPool::map() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

void ModelPool::listen(std::function<void()> listener) {
  const std::lock_guard lock(listener_mutex_);
  listener_ = std::move(listener);
}

void ModelPool::on_device_failure(std::function<void()> stop) {
  const std::lock_guard lock(listener_mutex_);
  stop_ = std::move(stop);
}

std::string ModelPool::device_failure() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void ModelPool::report_device_failure(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(loss_, message).empty()) return;
  }
  const std::lock_guard lock(listener_mutex_);
  if (stop_) stop_();
}

void ModelPool::notify(std::unique_lock<std::mutex>& lock) {
  changed_.notify_all();
  lock.unlock();
  {
    const std::lock_guard listening(listener_mutex_);
    if (listener_) listener_();
  }
  lock.lock();
}

void ModelPool::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    load_wanted(lock);
    unload_idle();
    free_retired(lock);
    if (options_.reload_interval.count() > 0 &&
        Clock::now() - last_check_ >= options_.reload_interval) {
      check_directories(lock);
      last_check_ = Clock::now();
    }
    if (!stopping_ && wanted_.empty()) changed_.wait_for(lock, tick_interval);
  }
}

void ModelPool::load_wanted(std::unique_lock<std::mutex>& lock) {
  while (!wanted_.empty() && !stopping_) {
    const int model = *wanted_.begin();
    const std::shared_ptr<const ModelMap> all = map_;
    for (const ModelEntry& entry : all->entries()) {
      if (entry.id != model) continue;
      lock.unlock();
      LoadedPtr loaded;
      std::string message;
      try {
        loaded = load(entry);
      } catch (const std::exception& error) {
        message = error.what();
      }
      lock.lock();
      if (loaded)
        loaded_[model] = std::move(loaded);
      else
        failures_[model] = {message, Clock::now()};
      statistics_.loaded = static_cast<std::int64_t>(loaded_.size());
    }
    wanted_.erase(model);
    notify(lock);
  }
}

ModelPool::LoadedPtr ModelPool::load(const ModelEntry& entry) {
  app::TranslateSpec spec = options_.translate;
  spec.models.models = {entry.directory};
  const auto glossary = glossaries_.find(key_of(entry.direction));
  if (glossary != glossaries_.end()) spec.text_rules.glossary = glossary->second;
  const Clock::time_point begin = Clock::now();
  auto loaded = std::make_shared<Loaded>();
  loaded->version = version_of(entry.directory);
  try {
    loaded->translator = std::make_unique<app::OpenTranslator>(spec, "nmt-serve");
  } catch (const DeviceLost& error) {
    report_device_failure(error.what());
    throw;
  } catch (const std::exception& error) {
    ++statistics_.failed_loads;
    throw;
  }
  for (int lane = loaded->translator->lanes(); lane-- > 0;) loaded->free_lanes.push_back(lane);
  loaded->last_use = Clock::now();
  log::info("loaded model={} source={} target={} seconds={:.3f}", entry.directory,
            entry.direction.source, entry.direction.target,
            std::chrono::duration<double>(loaded->last_use - begin).count());
  ++statistics_.loads;
  return loaded;
}

void ModelPool::retire(int model) {
  retired_.push_back(std::move(loaded_.at(model)));
  loaded_.erase(model);
  statistics_.loaded = static_cast<std::int64_t>(loaded_.size());
}

void ModelPool::unload_idle() {
  if (options_.unload_after.count() == 0) return;
  const Clock::time_point now = Clock::now();
  std::vector<int> idle;
  for (const auto& [model, entry] : loaded_)  // a batch that runs holds its entry
    if (entry.use_count() == 1 && now - entry->last_use >= options_.unload_after)
      idle.push_back(model);
  for (const int model : idle) {
    retire(model);
    for (const ModelEntry& entry : map_->entries())
      if (entry.id == model) log::info("unloaded model={} reason=idle", entry.directory);
  }
}

void ModelPool::free_retired(std::unique_lock<std::mutex>& lock) {
  std::vector<LoadedPtr> unused;
  for (LoadedPtr& entry : retired_)
    if (entry.use_count() == 1) unused.push_back(std::move(entry));
  if (unused.empty()) return;
  std::erase(retired_, nullptr);
  lock.unlock();
  statistics_.unloads += static_cast<std::int64_t>(unused.size());
  unused.clear();
  ::malloc_trim(0);
  lock.lock();
}

void ModelPool::check_directories(std::unique_lock<std::mutex>& lock) {
  update_map(lock);
  reload_changed(lock);
}

// Loads the models again whose directories have changed.
void ModelPool::reload_changed(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const ModelMap> all = map_;
  for (const ModelEntry& entry : all->entries()) {
    const auto found = loaded_.find(entry.id);
    if (found == loaded_.end()) continue;
    const LoadedPtr present = found->second;
    lock.unlock();
    const std::string version = version_of(entry.directory);
    LoadedPtr changed;
    if (!version.empty() && version != present->version && version != present->failed_version) {
      try {
        changed = load(entry);
      } catch (const std::exception& error) {
        log::warn("{}: the changed model cannot be loaded, the previous one stays: {}",
                  entry.directory, error.what());
        present->failed_version = version;
      }
    }
    lock.lock();
    if (!changed) continue;
    changed->last_use = present->last_use;
    retired_.push_back(std::exchange(loaded_.at(entry.id), std::move(changed)));
  }
}

// Logs what a folder has besides models, once.
std::vector<ModelEntry> ModelPool::find_models(bool is_running) {
  std::set<std::string> skipped;
  std::vector<ModelEntry> entries = serve::find_models(
      options_.models,
      [&](const std::string& entry) {
        if (skipped_.insert(entry).second) log::info("skipped {}", entry);
        skipped.insert(entry);
      },
      is_running);
  skipped_ = std::move(skipped);
  return entries;
}

// Models that came to a folder or left it.
void ModelPool::update_map(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const ModelMap> before = map_;
  lock.unlock();
  std::vector<ModelEntry> entries;
  std::string problem;
  try {
    entries = find_models(true);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  if (problem != std::exchange(problem_, problem) && !problem.empty())
    log::warn("{}; keeping the loaded models", problem);
  if (!problem.empty()) return;
  for (ModelEntry& entry : entries) {
    entry.id = -1;
    for (const ModelEntry& old : before->entries())
      if (old.direction == entry.direction && old.directory == entry.directory) entry.id = old.id;
    if (entry.id < 0) {
      entry.id = next_id_++;
      log::info("found model={} source={} target={}", entry.directory, entry.direction.source,
                entry.direction.target);
    }
  }
  for (const ModelEntry& old : before->entries())
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const ModelEntry& entry) { return entry.id == old.id; })) {
      log::info("removed model={}", old.directory);
      if (loaded_.contains(old.id)) retire(old.id);
      failures_.erase(old.id);
    }
  map_ = std::make_shared<const ModelMap>(std::move(entries));
  notify(lock);
}

}  // namespace nmt::serve
