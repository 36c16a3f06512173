#pragma once

#include "app/translate/translate.h"
#include "serve/batcher.h"
#include "serve/model_map.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace nmt::serve {

struct ModelPoolOptions {
  std::vector<std::string> models;          ///< as find_models()
  std::vector<std::string> glossaries;      ///< "en-de=FILE"
  app::TranslateSpec translate;             ///< of each model, but for the model and the glossary
  std::chrono::seconds unload_after{0};     ///< without requests; 0: never
  std::chrono::seconds reload_interval{5};  ///< between checks for changed models; 0: none
};

/// The models of a server: loaded on first use, unloaded when idle, loaded again when their
/// directory has another checkpoint. A damaged new checkpoint leaves the old model in use.
///
/// Thread safety: translate() and tick() belong to one thread, the other members to any.
class ModelPool : public Engine {
 public:
  /// Reads no weights. Errors: as find_models() and Glossary::load; (usage) a glossary of no model.
  explicit ModelPool(const ModelPoolOptions& options);
  ~ModelPool() override;

  /// The models that exist at present.
  std::shared_ptr<const ModelMap> map() const;

  /// Errors: as OpenTranslator and BatchTranslator.
  std::vector<Hypotheses> translate(int model, bool n_best,
                                    std::span<const std::string> sentences) override;
  void tick() override;

  struct Statistics {
    std::atomic<std::int64_t> loaded{0};             ///< models in memory now
    std::atomic<std::int64_t> loads{0}, unloads{0};  ///< a reload is both
    std::atomic<std::int64_t> failed_loads{0};
    std::atomic<std::int64_t> in_parts{0}, redecoded{0}, cut{0};  ///< TextTranslator::Statistics
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  struct Loaded {
    std::unique_ptr<app::OpenTranslator> translator;
    std::string version;         // of the directory when it was loaded
    std::string failed_version;  // that could not be loaded
    Clock::time_point last_use;
    std::int64_t in_parts = 0, redecoded = 0, cut = 0;  // already added to the statistics
  };
  Loaded& loaded(int model);
  std::unique_ptr<app::OpenTranslator> load(const ModelEntry& entry);
  void unload(int model);
  void unload_idle(Clock::time_point now);
  void find_changes();
  void update_map();

  const ModelPoolOptions options_;
  std::map<std::string, std::string> glossaries_;  // file by "source target"
  Statistics statistics_;
  mutable std::mutex mutex_;  // of map_
  std::shared_ptr<const ModelMap> map_;
  int next_id_ = 0;
  std::map<int, Loaded> loaded_;
  Clock::time_point last_check_;
};

}  // namespace nmt::serve
