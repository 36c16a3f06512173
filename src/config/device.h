#pragma once

#include <string_view>

namespace nmt {

/// Value of --device: "cpu"; "cuda" or "cuda:N", the N-th GPU counted from 0 (also Marian's plain
/// "N"); "auto", the first GPU, or the CPU if there is no GPU.
struct DeviceChoice {
  enum class Kind { cpu, cuda, automatic };
  Kind kind = Kind::cpu;
  int index = 0;
};

/// Parses the value. Error (usage): another form; `option` is named in the message.
DeviceChoice parse_device(std::string_view text, std::string_view option);

}  // namespace nmt
