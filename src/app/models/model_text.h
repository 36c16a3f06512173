#pragma once

#include "config/specs.h"

#include <string>

namespace nmt::app {

/// "deep, lrn, embeddings of 256 and states of 256, 2+2 layers"
std::string model_summary(const ModelSpec& spec);

}  // namespace nmt::app
