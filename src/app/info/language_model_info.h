#pragma once

#include "app/info/info.h"

#include <string>

namespace nmt::app {

/// info() of a language model: its origin, settings, vocabulary and precision are known.
std::string language_model_info(const InfoSpec& spec, ModelInfo info);

}  // namespace nmt::app
