#pragma once

#include <string>

namespace nmt::serve {

/// Identifies what a model directory has at present, to detect changes: the checkpoint, times, and
/// names and sizes of files. "" where it cannot be read.
std::string version_of(const std::string& directory);

}  // namespace nmt::serve
