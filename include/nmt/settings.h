#pragma once

#include <map>
#include <string>

namespace nmt {

/// Options by the names of the programs' command lines, without dashes in front:
/// {{"enc-cell", "gru"}, {"tied-embeddings", "false"}}. The values of a list are separated by white
/// space, so none of them has any; lists of files with such names are members of the options.
/// Names and values are checked as the programs check them.
using Settings = std::map<std::string, std::string>;

}  // namespace nmt
