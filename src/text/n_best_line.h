#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nmt {

/// A line of a Moses n-best list: "id ||| text ||| features ||| score"; everything after the text
/// is optional. The views are of the line.
struct NBestLine {
  std::int64_t id = -1;
  std::string_view text;
  std::string_view features;  ///< "NAME= VALUE ...", with the alignment before them if any
  std::string_view rest;      ///< what follows the features, with its separator
};

/// The parts of a line; nothing if it is not a line of an n-best list.
std::optional<NBestLine> read_n_best(std::string_view line);

}  // namespace nmt
