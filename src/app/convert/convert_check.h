#pragma once

#include "app/convert/convert.h"
#include "tensor/tensor.h"

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// Translates the sentences of the check with float32 weights and with weights `to`. Returns what
/// was found, for the new model's state.json: {"sentences", "bleu-float32", "bleu"}. Errors (usage,
/// data): no sentences to check by; (failed): BLEU falls by more than the tolerance.
nlohmann::ordered_json check_conversion(const ConvertSpec& spec, Dtype to);

}  // namespace nmt::app
