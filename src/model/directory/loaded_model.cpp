#include "model/directory/loaded_model.h"

#include "core/error.h"
#include "model/directory/from_settings.h"
#include "model/directory/stored_weights.h"

#include <future>
#include <set>

#include <fmt/ranges.h>

namespace nmt {
namespace {

// The first names of a list that may be long.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + most, ", "),
                     names.size() - most);
}

// One chunk of the arena for all weights in float32; chunks of a few matrices each have gaps.
void reserve_weights(const Context& context, const ParameterSet& parameters) {
  constexpr std::size_t alignment = 64;
  if (!context.backend->host_memory || context.weights != Dtype::f32) return;
  std::size_t bytes = 0;
  for (const Parameter& p : parameters.all())
    bytes += (static_cast<std::size_t>(p.shape.elements()) * sizeof(float) + alignment - 1) /
             alignment * alignment;
  context.arena->reserve(bytes);
}

}  // namespace

void check_weights(const safetensors::File& file, Dtype weights, const ParameterSet& parameters) {
  std::vector<std::string> missing, left_over;
  std::set<std::string, std::less<>> known;
  for (const Parameter& p : parameters.all()) {
    known.insert(p.name);
    if (weights == Dtype::i8 && p.may_be_rounded()) known.insert(scales_name(p));
  }
  for (const std::string& name : known)
    if (!file.find(name)) missing.push_back(name);
  for (const safetensors::View& view : file.tensors())
    if (!known.contains(view.name)) left_over.push_back(view.name);
  if (!missing.empty() || !left_over.empty()) {
    std::string what;
    if (!missing.empty()) what = "lacks " + some(missing);
    if (!left_over.empty())
      what +=
          fmt::format("{}has unexpected tensors: {}", what.empty() ? "" : "; ", some(left_over));
    fail(ExitStatus::data, "{}: does not match config.json: {}", file.path(), what);
  }
  for (const Parameter& p : parameters.all()) check_stored(file, p, weights);
}

void load_frozen(const safetensors::File& file, Dtype weights, Model& model) {
  check_weights(file, weights, model.parameters());
  reserve_weights(model.context(), model.parameters());
  model.freeze([&](Parameter& p) { fetch_stored(file, weights, model.context(), p); });
}

std::unique_ptr<LoadedModel> LoadedModel::load(const std::string& directory,
                                               const Context& context) {
  const ModelDirectory model_directory = ModelDirectory::open(directory);
  model_directory.require(Task::translation);
  const StoredCheckpoint checkpoint = model_directory.published();
  std::unique_ptr<LoadedModel> loaded(new LoadedModel);
  loaded->updates_ = checkpoint.updates();
  loaded->folder_ = checkpoint.folder();
  // The file is verified while the vocabularies are read, or after them if no thread can start.
  const auto open = [&checkpoint] { return checkpoint.open_model(); };
  std::future<safetensors::File> weights;
  try {
    weights = std::async(std::launch::async, open);
  } catch (const std::system_error&) {
    weights = std::async(std::launch::deferred, open);
  }
  loaded->vocabularies_ = model_directory.load_vocabularies();
  loaded->model_ = from_settings(directory, [&] {
    return std::make_unique<Model>(model_directory.spec(), model_directory.source_size(),
                                   model_directory.target_size(), context, 0, Model::Weights::none);
  });
  load_frozen(weights.get(), model_directory.weights(), *loaded->model_);
  const Vocabulary& target = *loaded->vocabularies_.target;
  loaded->scorer_ = std::make_unique<ModelScorer>(*loaded->model_, target.bos(), target.eos());
  return loaded;
}

}  // namespace nmt
