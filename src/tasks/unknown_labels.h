#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nmt {

/// Warns of the labels of an evaluation file that a model does not have: they count as errors.
/// `lines`: the labels of the file, separated by spaces. `labeled`: what has a label, "word".
void warn_of_unknown_labels(const std::string& file, std::span<const std::string> known,
                            std::span<const std::string> lines, std::string_view labeled);

/// Fails if a model does not have all labels of its training text, as where the text of a resumed
/// training has new ones: no loss would see them. `start_anew`: how to, for the message.
void require_known_labels(const std::string& file, std::span<const std::string> known,
                          std::span<const std::string> lines, std::string_view labeled,
                          std::string_view start_anew);

/// Fails if no example of a development file has only labels that the model has: its cross-entropy
/// would be that of nothing. `example`: "sentence", "text".
void require_an_example_of_known_labels(const std::string& file, std::span<const std::string> known,
                                        std::span<const std::string> lines,
                                        std::string_view example);

}  // namespace nmt
