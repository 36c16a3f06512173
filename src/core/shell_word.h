#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A word as a POSIX shell reads it back; quoted only where needed: model, 'my model'.
std::string shell_word(std::string_view word);
/// The words of a command as a POSIX shell reads them back: "nmt-train 'my file.en' -o x".
std::string shell_command(const std::vector<std::string>& words);

}  // namespace nmt
