#pragma once

#include <string>

namespace nmt {

/// Hashes that tell whether a text is that of a checkpoint; "": no text.
struct TextIdentity {
  std::string current;
  std::string v0_2;  ///< as version 0.2.0 computed it, which its checkpoints have
};

}  // namespace nmt
