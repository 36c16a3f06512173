#include "app/distill/model_size.h"

#include "model/directory/model_directory.h"
#include "model/model.h"

#include <filesystem>

namespace nmt::app {

ModelSize model_size(const std::string& directory) {
  const ModelDirectory stored = ModelDirectory::open(directory);
  Model model(stored.spec(), stored.source_size(), stored.target_size(), Context{}, 1);
  const std::string file = stored.published().folder() + "/model.safetensors";
  return {static_cast<std::int64_t>(std::filesystem::file_size(file)),
          model.parameters().elements()};
}

}  // namespace nmt::app
