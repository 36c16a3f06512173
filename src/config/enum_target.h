#pragma once

#include "config/enum_names.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::config {

/// Name of an unset std::optional enumeration, whose value is chosen automatically.
inline constexpr const char* automatic = "auto";

/// Type-erased pointer to the enumeration member of an option: E, std::optional<E>, which also
/// accepts "auto", or std::vector<E>, a list.
class EnumTarget {
 public:
  template <NamedEnum E>
  EnumTarget(E* member)
      : member_(member),
        is_list_(false),
        words_(enum_words<E>),
        values_([](const void* at) {
          return std::vector<std::string>{std::string(name_of(*static_cast<const E*>(at)))};
        }),
        fill_([](void* at, const std::vector<std::string>& words, bool) {
          *static_cast<E*>(at) = *find_enum<E>(words.at(0));
        }) {}

  template <NamedEnum E>
  EnumTarget(std::optional<E>* member)
      : member_(member),
        is_list_(false),
        words_([] {
          std::vector<std::string> all = enum_words<E>();
          all.insert(all.begin(), automatic);
          return all;
        }),
        values_([](const void* at) {
          const auto& value = *static_cast<const std::optional<E>*>(at);
          return std::vector<std::string>{value ? std::string(name_of(*value)) : automatic};
        }),
        fill_([](void* at, const std::vector<std::string>& words, bool) {
          *static_cast<std::optional<E>*>(at) = find_enum<E>(words.at(0));
        }) {}

  template <NamedEnum E>
  EnumTarget(std::vector<E>* member)
      : member_(member),
        is_list_(true),
        words_(enum_words<E>),
        values_([](const void* at) {
          std::vector<std::string> words;
          for (const E value : *static_cast<const std::vector<E>*>(at))
            words.emplace_back(name_of(value));
          return words;
        }),
        fill_([](void* at, const std::vector<std::string>& words, bool append) {
          auto& list = *static_cast<std::vector<E>*>(at);
          if (!append) list.clear();
          for (const std::string& word : words) list.push_back(*find_enum<E>(word));
        }) {}

  bool is_list() const { return is_list_; }
  /// All names that the member accepts.
  std::vector<std::string> words() const { return words_(); }
  /// The current value as names: one, or any number for a list.
  std::vector<std::string> values() const { return values_(member_); }
  /// Sets the member from names in words(). `append` adds to a list instead of replacing it.
  void fill(const std::vector<std::string>& words, bool append) const {
    fill_(member_, words, append);
  }

 private:
  void* member_;
  bool is_list_;
  std::vector<std::string> (*words_)();
  std::vector<std::string> (*values_)(const void*);
  void (*fill_)(void*, const std::vector<std::string>&, bool);
};

}  // namespace nmt::config
