#include "nmt/model/loaded_model.h"

#include <fmt/ranges.h>

#include "nmt/core/error.h"
#include "nmt/tensor/copy.h"

namespace nmt {
namespace {

// The first names of a list that may be long.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + most, ", "), names.size() - most);
}

}  // namespace

void load_frozen(const safetensors::File& file, Model& model) {
  ParameterSet& parameters = model.parameters();
  std::vector<std::string> missing, left_over;
  for (const Parameter& p : parameters.all())
    if (!file.find(p.name)) missing.push_back(p.name);
  for (const safetensors::View& view : file.tensors())
    if (!parameters.find(view.name)) left_over.push_back(view.name);
  if (!missing.empty() || !left_over.empty()) {
    std::string what;
    if (!missing.empty()) what = "lacks " + some(missing);
    if (!left_over.empty()) what += fmt::format("{}holds what the model has no place for: {}", what.empty() ? "" : "; ", some(left_over));
    fail(ExitStatus::data, "{}: does not fit config.json: {}", file.path(), what);
  }
  for (const Parameter& p : parameters.all()) file.require(p.name, safetensors::Dtype::f32, p.shape);
  model.freeze([&](Parameter& p) {
    const safetensors::View& view = *file.find(p.name);
    if (!p.value) p.value = model.context().empty(p.shape);
    dispatch(model.context(), [&](const auto& backend) { copy_in(backend, p.value.f32(), view.data, view.bytes()); });
    file.forget(view);
  });
}

std::unique_ptr<LoadedModel> LoadedModel::load(const std::string& directory, const Context& context) {
  const ModelDirectory place = ModelDirectory::open(directory);
  const StoredCheckpoint checkpoint = place.published();
  std::unique_ptr<LoadedModel> loaded(new LoadedModel);
  loaded->updates_ = checkpoint.updates();
  loaded->folder_ = checkpoint.folder();
  loaded->vocabularies_ = place.load_vocabularies();
  loaded->model_ = std::make_unique<Model>(place.spec(), place.source_size(), place.target_size(), context, 0, Model::Weights::none);
  load_frozen(checkpoint.open_model(), *loaded->model_);
  const Vocabulary& target = *loaded->vocabularies_.target;
  loaded->scorer_ = std::make_unique<ModelScorer>(*loaded->model_, target.bos(), target.eos());
  return loaded;
}

}  // namespace nmt
