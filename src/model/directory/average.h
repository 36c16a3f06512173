#pragma once

#include "tensor/safetensors.h"

#include <memory>
#include <vector>

namespace nmt {

/// The element-wise mean of several checkpoints.
struct AveragedWeights {
  std::vector<std::vector<float>> values;
  std::vector<safetensors::View> tensors;  ///< of the values, in the order of the first file
};

/// Averages float32 tensors, summed in double in the order of the files. Errors: (usage) no file;
/// (data) the files differ in tensors, shapes or dtypes; names file and tensor.
AveragedWeights average_weights(const std::vector<std::unique_ptr<safetensors::File>>& files);

}  // namespace nmt
