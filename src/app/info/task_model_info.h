#pragma once

#include "app/info/info.h"

#include <string>

namespace nmt::app {

/// info() of a model without a source side: a language model, tagger or classifier. Its origin,
/// settings, vocabularies and precision are known.
std::string task_model_info(const InfoSpec& spec, ModelInfo info);

}  // namespace nmt::app
