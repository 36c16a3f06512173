#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nmt {

/// Warns of the labels of an evaluation file that a model does not have: they count as errors.
/// `lines`: the labels of the file, separated by spaces. `labeled`: what has a label, "word".
void warn_of_unknown_labels(const std::string& file, std::span<const std::string> known,
                            std::span<const std::string> lines, std::string_view labeled);

}  // namespace nmt
