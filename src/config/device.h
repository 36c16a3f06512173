#pragma once

#include <string_view>

namespace nmt {

/// Where to compute, as --device says it: "cpu"; "cuda" or "cuda:N", the N-th GPU from 0 (Marian's
/// plain "N" too); "auto", the first GPU where there is one and else the CPU.
struct DeviceChoice {
  enum class Kind { cpu, cuda, automatic };
  Kind kind = Kind::cpu;
  int index = 0;
};

/// Error (usage): none of these. `option` is for the message.
DeviceChoice parse_device(std::string_view text, std::string_view option);

}  // namespace nmt
