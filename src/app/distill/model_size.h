#pragma once

#include <cstdint>
#include <string>

namespace nmt::app {

struct ModelSize {
  std::int64_t bytes = 0;    ///< of the published weights in the model directory
  std::int64_t weights = 0;  ///< number
};

/// Errors: as ModelDirectory::open and published.
ModelSize model_size(const std::string& directory);

}  // namespace nmt::app
