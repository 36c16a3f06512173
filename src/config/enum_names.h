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

/// The words of an enumeration in options, files and logs: specialize with a constexpr array
/// `names` in the order of the enumerators, which count from 0. "" is a word that --help leaves
/// out.
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

/// The word of an enumerator. The view ends with a 0: names are literals.
template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  return EnumNames<E>::names[static_cast<std::size_t>(value)];
}

/// The enumerator with that word; nothing when there is none.
template <NamedEnum E>
constexpr std::optional<E> find_enum(std::string_view text) {
  const auto& names = EnumNames<E>::names;
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

/// All words of an enumeration.
template <NamedEnum E>
std::vector<std::string> enum_words() {
  return {EnumNames<E>::names.begin(), EnumNames<E>::names.end()};
}

/// The enumerator with that word. Error (`status`): "option: 'text' is not one of: a, b, c".
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
