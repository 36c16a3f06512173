#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace nmt::app {

/// An option that names a file or directory to be written.
struct NamedOutput {
  const char* option;
  std::string path;  ///< "-": standard output; "": none
};

/// What a job reads, which its outputs must leave as it is.
struct JobInputs {
  std::vector<std::string> files;   ///< "-": standard input; "": none
  std::vector<std::string> models;  ///< model directories
};

/// The name of standard input and output, "-", for a file that is not named.
inline std::string or_standard_stream(const std::string& file) {
  return file.empty() ? "-" : file;
}

/// Whether the file is standard output: "-", /dev/stdout, or the file or device that it is
/// redirected to, except /dev/null.
bool is_standard_output(const std::string& file);

/// Errors (usage): an output is one of the regular files that the job reads, a file of one of the
/// models (a new file of another name in its directory is none), or the file of another output.
void check_outputs(const JobInputs& read, std::initializer_list<NamedOutput> outputs);

}  // namespace nmt::app
