#pragma once

#include "app/translate/translate.h"
#include "serve/batcher.h"
#include "serve/model_map.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace nmt::serve {

struct ModelPoolOptions {
  std::vector<std::string> models;          ///< as serve::find_models()
  std::vector<std::string> glossaries;      ///< "en-de=FILE"
  app::TranslateSpec translate;             ///< of each model, but for the model and the glossary
  std::chrono::seconds unload_after{0};     ///< without batches; 0: never
  std::chrono::seconds reload_interval{5};  ///< between checks for changed models; 0: none
};

/// The models of a server: loaded on first use, unloaded when idle, loaded again when their
/// directory has another checkpoint. A damaged new checkpoint leaves the old model in use.
///
/// A thread of the pool loads and frees models. Batches that have begun finish with the model that
/// they began with; later ones use the new model. Thread-safe.
class ModelPool : public Engine {
 public:
  /// Reads no weights. Errors: as serve::find_models() and Glossary::load; (usage) a glossary of no
  /// model.
  explicit ModelPool(const ModelPoolOptions& options);
  /// No other member may run.
  ~ModelPool() override;

  /// The models that exist at present.
  std::shared_ptr<const ModelMap> map() const;

  /// Waits until the model is loaded. Errors: as OpenTranslator and BatchTranslator; (failed) the
  /// model was removed.
  std::vector<Hypotheses> translate(int model, Want want, std::span<const std::string> sentences,
                                    std::span<const std::span<const std::string>> before) override;
  /// True as well if translate() would fail.
  bool is_ready(int model) override;
  void listen(std::function<void()> listener) override;
  bool keeps_marked() const override { return options_.translate.text_rules.keeps_marked(); }
  /// Called once, from any thread, when the GPU is lost (tensor/device_lost.h); empty: nobody
  /// listens.
  void on_device_failure(std::function<void()> stop);
  /// The message of the error that lost the GPU, or "".
  std::string device_failure() const;

  struct Statistics {
    std::atomic<std::int64_t> loaded{0};             ///< models in memory now
    std::atomic<std::int64_t> loads{0}, unloads{0};  ///< a reload is both
    std::atomic<std::int64_t> failed_loads{0};
    std::atomic<std::int64_t> in_parts{0}, replaced{0}, cut{0};  ///< TextTranslator::Statistics
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  struct Loaded {
    std::unique_ptr<app::OpenTranslator> translator;
    std::string version;         // of the directory when it was loaded
    std::string failed_version;  // that could not be loaded
    Clock::time_point last_use;
    std::vector<int> free_lanes;
    std::int64_t in_parts = 0, replaced = 0, cut = 0;  // already added to the statistics
  };
  using LoadedPtr = std::shared_ptr<Loaded>;
  struct Failure {
    std::string message;
    Clock::time_point time;
  };
  class Lease;

  // In the threads of translate(); `lock` holds mutex_.
  bool can_begin(int model);
  LoadedPtr acquire(std::unique_lock<std::mutex>& lock, int model);
  void count_text(Loaded& entry);

  // In the thread of the pool, and before it starts.
  std::vector<ModelEntry> find_models(bool is_running);
  // In the thread of the pool.
  void run();
  void load_wanted(std::unique_lock<std::mutex>& lock);
  void free_retired(std::unique_lock<std::mutex>& lock);
  void check_directories(std::unique_lock<std::mutex>& lock);
  void update_map(std::unique_lock<std::mutex>& lock);
  void reload_changed(std::unique_lock<std::mutex>& lock);
  void unload_idle();
  void retire(int model);
  LoadedPtr load(const ModelEntry& entry);
  void notify(std::unique_lock<std::mutex>& lock);
  // In any thread, without a lock.
  void report_device_failure(const std::string& message);

  const ModelPoolOptions options_;
  std::set<std::string> skipped_;                  // entries of folders at the last check
  std::string problem_;                            // of the last check
  std::map<std::string, std::string> glossaries_;  // file by "source target"
  Statistics statistics_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::shared_ptr<const ModelMap> map_;
  std::map<int, LoadedPtr> loaded_;
  std::map<int, Failure> failures_;
  std::set<int> wanted_;            // to load
  std::vector<LoadedPtr> retired_;  // to free once no batch uses them
  std::string loss_;
  std::function<void()> listener_, stop_;
  std::mutex listener_mutex_;
  int next_id_ = 0;
  Clock::time_point last_check_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace nmt::serve
