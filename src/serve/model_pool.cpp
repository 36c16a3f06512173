#include "serve/model_pool.h"

#include "core/error.h"
#include "core/log.h"
#include "text/glossary.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include <malloc.h>

namespace nmt::serve {
namespace {

// Names what a model directory has at present; "" where it cannot be read.
std::string version_of(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string version;
  const auto add_time = [&](const fs::path& path) {
    const auto time = fs::last_write_time(path, error);
    if (!error) version += fmt::format(" {}", time.time_since_epoch().count());
  };
  for (const char* link : {"best", "latest"}) {
    const fs::path target = fs::read_symlink(fs::path(directory) / link, error);
    if (error) continue;
    version = target.string();
    add_time(fs::path(directory) / link / "manifest.json");
    break;
  }
  add_time(fs::path(directory) / "config.json");
  return error ? "" : version;
}

std::string key_of(const Direction& direction) {
  return direction.source + " " + direction.target;
}

}  // namespace

ModelPool::ModelPool(const ModelPoolOptions& options)
    : options_(options),
      map_(std::make_shared<const ModelMap>(find_models(options.models))),
      next_id_(static_cast<int>(map_->entries().size())),
      last_check_(Clock::now()) {
  for (const std::string& word : options.glossaries) {
    const std::size_t equals = word.find('=');
    Direction direction;
    if (equals == std::string::npos || !parse_direction(word.substr(0, equals), direction))
      fail(ExitStatus::usage, "glossaries: '{}': expected LANGUAGES=FILE, for example en-de=FILE",
           word);
    const std::vector<ModelEntry>& entries = map_->entries();
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const ModelEntry& entry) { return entry.direction == direction; }))
      fail(ExitStatus::usage, "glossaries: '{}': no model translates {} to {}", word,
           direction.source, direction.target);
    const std::string file = word.substr(equals + 1);
    Glossary::load(file);
    glossaries_[key_of(direction)] = file;
  }
}

ModelPool::~ModelPool() = default;

std::shared_ptr<const ModelMap> ModelPool::map() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

std::unique_ptr<app::OpenTranslator> ModelPool::load(const ModelEntry& entry) {
  app::TranslateSpec spec = options_.translate;
  spec.models.models = {entry.directory};
  const auto glossary = glossaries_.find(key_of(entry.direction));
  if (glossary != glossaries_.end()) spec.text_rules.glossary = glossary->second;
  const Clock::time_point begin = Clock::now();
  try {
    auto translator = std::make_unique<app::OpenTranslator>(spec, "nmt-serve");
    log::info("loaded model={} source={} target={} seconds={:.3f}", entry.directory,
              entry.direction.source, entry.direction.target,
              std::chrono::duration<double>(Clock::now() - begin).count());
    ++statistics_.loads;
    return translator;
  } catch (const std::exception& error) {
    ++statistics_.failed_loads;
    throw;
  }
}

ModelPool::Loaded& ModelPool::loaded(int model) {
  const auto found = loaded_.find(model);
  if (found != loaded_.end()) return found->second;
  const std::shared_ptr<const ModelMap> all = map();
  for (const ModelEntry& entry : all->entries()) {
    if (entry.id != model) continue;
    Loaded added;
    added.version = version_of(entry.directory);
    added.translator = load(entry);
    statistics_.loaded = static_cast<std::int64_t>(loaded_.size()) + 1;
    return loaded_.emplace(model, std::move(added)).first->second;
  }
  fail(ExitStatus::failed, "the model of this direction was removed");
}

std::vector<Hypotheses> ModelPool::translate(int model, bool n_best,
                                             std::span<const std::string> sentences) {
  Loaded& entry = loaded(model);
  entry.last_use = Clock::now();
  LineTranslator& translator = n_best ? entry.translator->n_best() : entry.translator->translator();
  std::vector<Hypotheses> results;
  results.reserve(sentences.size());
  for (LineTranslation& line : translator.translate(sentences)) {
    Hypotheses& hypotheses = results.emplace_back();
    for (Output& output : line.outputs) hypotheses.push_back(std::move(output.text));
  }
  const TextTranslator::Statistics& text = entry.translator->text_statistics();
  statistics_.in_parts += text.in_parts - std::exchange(entry.in_parts, text.in_parts);
  statistics_.redecoded += text.redecoded - std::exchange(entry.redecoded, text.redecoded);
  statistics_.cut += text.cut - std::exchange(entry.cut, text.cut);
  entry.last_use = Clock::now();
  return results;
}

void ModelPool::unload(int model) {
  loaded_.erase(model);
  ++statistics_.unloads;
  statistics_.loaded = static_cast<std::int64_t>(loaded_.size());
  ::malloc_trim(0);
}

void ModelPool::tick() {
  const Clock::time_point now = Clock::now();
  unload_idle(now);
  if (options_.reload_interval.count() == 0 || now - last_check_ < options_.reload_interval) return;
  update_map();
  find_changes();
  last_check_ = Clock::now();
}

void ModelPool::unload_idle(Clock::time_point now) {
  if (options_.unload_after.count() == 0) return;
  std::vector<int> idle;
  for (const auto& [model, entry] : loaded_)
    if (now - entry.last_use >= options_.unload_after) idle.push_back(model);
  for (const int model : idle) {
    unload(model);
    log::info("unloaded model={} reason=idle", model);
  }
}

// Loads the models again whose directories have changed.
void ModelPool::find_changes() {
  const std::shared_ptr<const ModelMap> all = map();
  for (const ModelEntry& entry : all->entries()) {
    const auto found = loaded_.find(entry.id);
    if (found == loaded_.end()) continue;
    Loaded& present = found->second;
    const std::string version = version_of(entry.directory);
    if (version.empty() || version == present.version || version == present.failed_version)
      continue;
    try {
      std::unique_ptr<app::OpenTranslator> translator = load(entry);
      Loaded changed;
      changed.version = version;
      changed.last_use = present.last_use;
      changed.translator = std::move(translator);
      present = std::move(changed);
      ++statistics_.unloads;
      ::malloc_trim(0);
    } catch (const std::exception& error) {
      log::warn("{}: the changed model cannot be loaded, the previous one stays: {}",
                entry.directory, error.what());
      present.failed_version = version;
    }
  }
}

// Models that came to a folder or left it.
void ModelPool::update_map() {
  std::vector<ModelEntry> entries;
  const std::shared_ptr<const ModelMap> before = map();
  try {
    entries = find_models(options_.models);
  } catch (const std::exception& error) {
    log::warn("{}; the models stay as they are", error.what());
    last_check_ = Clock::now();
    return;
  }
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
      if (loaded_.contains(old.id)) unload(old.id);
    }
  auto map = std::make_shared<const ModelMap>(std::move(entries));
  const std::lock_guard lock(mutex_);
  map_ = std::move(map);
}

}  // namespace nmt::serve
