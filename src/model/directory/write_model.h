#pragma once

#include "model/directory/model_directory.h"

#include <cstdint>
#include <span>
#include <string>

namespace nmt {

/// Error (usage): there is something under this name already.
void expect_new(const std::string& path);

/// Writes a model directory that translates with these weights, held in `weights`
/// (stored_weights.h): settings and vocabularies of `like`, one checkpoint, nothing to resume from.
/// The directory appears whole or not at all. Errors (usage): `path` exists; (failed): cannot be
/// written.
void write_model(const std::string& path, const ModelDirectory& like,
                 std::span<const safetensors::View> tensors, Dtype weights, std::int64_t updates,
                 const std::string& info);

}  // namespace nmt
