#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace nmt::app {

/// An option that names a file or directory to be written; "" and "-": none.
struct NamedOutput {
  const char* option;
  const std::string& path;
};

/// What a job reads, which its outputs must leave as it is.
struct JobInputs {
  std::vector<std::string> files;   ///< "-": standard input; "": none
  std::vector<std::string> models;  ///< model directories
};

/// The name of standard input, "-", for an input that is not named.
inline std::string or_standard_input(const std::string& input) {
  return input.empty() ? "-" : input;
}

/// Errors (usage): an output is one of the regular files that the job reads, a file of one of the
/// models (a new file of another name in its directory is none), or the file of another output.
void check_outputs(const JobInputs& read, std::initializer_list<NamedOutput> outputs);

}  // namespace nmt::app
