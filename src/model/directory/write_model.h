#pragma once

#include "model/directory/model_directory.h"

#include <cstdint>
#include <span>
#include <string>

namespace nmt {

/// Errors (usage): the path exists, or its parent directory cannot be written.
void expect_new(const std::string& path);

/// Writes a model directory with these weights, stored as `weights` (stored_weights.h): settings
/// and vocabularies of `like`, one checkpoint, no state for resuming, and a stored `shortlist`
/// unless it is empty. The directory is created atomically. Errors: (usage) `path` exists; (failed)
/// it cannot be written.
void write_model(const std::string& path, const ModelDirectory& like,
                 std::span<const safetensors::View> tensors, Dtype weights, std::int64_t updates,
                 const std::string& info, const std::string& shortlist = "");

}  // namespace nmt
