#pragma once

#include "core/error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Names of an enumeration's values in options, files and logs. Specialize it with a constexpr
/// array `names` in the order of the enumerators, which count from 0. --help omits an empty name.
///
///   enum class Precision { float32, tf32, bfloat16, int8 };
///   template <>
///   struct EnumNames<Precision> {
///     static constexpr std::array<std::string_view, 4> names{"float32", "tf32", "bfloat16",
///                                                            "int8"};
///   };
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::names.size();
};

/// The name of an enumerator. The view is null-terminated, since names are literals.
template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  return EnumNames<E>::names[static_cast<std::size_t>(value)];
}

/// The enumerator with that name; nullopt if there is none.
template <NamedEnum E>
constexpr std::optional<E> find_enum(std::string_view text) {
  const auto& names = EnumNames<E>::names;
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

/// All names of an enumeration.
template <NamedEnum E>
std::vector<std::string> enum_words() {
  return {EnumNames<E>::names.begin(), EnumNames<E>::names.end()};
}

/// The enumerator with that name. Error (`status`): "option: 'text' is not one of: a, b, c".
template <NamedEnum E>
E parse_enum(std::string_view text, std::string_view option,
             ExitStatus status = ExitStatus::usage) {
  if (const std::optional<E> value = find_enum<E>(text)) return *value;
  std::string known;
  for (const std::string_view name : EnumNames<E>::names)
    if (!name.empty()) known.append(known.empty() ? "" : ", ").append(name);
  fail(status, "{}: '{}' is not one of: {}", option, text, known);
}

}  // namespace nmt
