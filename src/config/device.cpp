#include "config/device.h"

#include "core/error.h"

#include <charconv>

namespace nmt {

DeviceChoice parse_device(std::string_view text, std::string_view option) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return {Kind::cpu, 0};
  if (text == "auto") return {Kind::automatic, 0};
  if (text == "cuda") return {Kind::cuda, 0};
  const std::string_view number = text.starts_with("cuda:") ? text.substr(5) : text;
  int index = -1;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (number.empty() || error != std::errc() || rest != number.data() + number.size() || index < 0)
    fail(ExitStatus::usage, "{}: '{}' is not cpu, cuda, cuda:N or auto", option, text);
  return {Kind::cuda, index};
}

}  // namespace nmt
