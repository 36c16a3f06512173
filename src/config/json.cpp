#include "config/json.h"

#include "core/nlohmann.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

// Whether a JSON value has the type for T. JSON has one kind of number, but 1.5 is not an integer.
template <class T, class Json>
bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean();
  else if constexpr (std::is_same_v<T, std::string>)
    return value.is_string();
  else if constexpr (std::is_same_v<T, double>)
    return value.is_number();
  else
    return value.is_number_integer();
}

/// The value as a word for assign().
template <class Json>
std::string word(const Json& value) {
  if (value.is_structured())
    return value.is_array() ? "[...]" : "{...}";  // dumping could overflow the stack
  return value.is_string() ? value.template get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Json>
void read_value(const Option& option, const Json& value, const std::string& where) {
  if (option.chosen && value == "auto")
    return assign(option, {"auto"}, where, false, ExitStatus::data);
  std::vector<std::string> words;
  std::visit(
      [&](auto target) {
        using T = std::remove_pointer_t<decltype(target)>;
        const auto take = [&]<class Element>(const Json& element, const Element*) {
          if (!has_type<Element>(element))
            fail(ExitStatus::data, "{}: '{}' is not {}", where, shown(word(element)),
                 expected(option));
          words.push_back(word(element));
        };
        if constexpr (std::is_same_v<T, EnumTarget>) {
          const std::string* const text = nullptr;
          if (target.is_list() && !value.is_array())
            fail(ExitStatus::data, "{}: not a list", where);
          if (!target.is_list()) return take(value, text);
          for (const Json& element : value) take(element, text);
        } else if constexpr (is_vector<T>) {
          if (!value.is_array()) fail(ExitStatus::data, "{}: not a list", where);
          for (const Json& element : value)
            take(element, static_cast<typename T::value_type*>(nullptr));
        } else if constexpr (!std::is_same_v<T, std::monostate>) {
          take(value, target);
        }
      },
      option.target);
  assign(option, words, where, false, ExitStatus::data);
}

template <class Json>
void read(const Json& json, const std::vector<Option>& fields, const std::string& name) {
  if (!json.is_object()) fail(ExitStatus::data, "{}: expected a JSON object of settings", name);
  std::vector<std::string> unknown, missing;
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Option& option) {
      return option.name == key && option.sets.empty();
    });
    if (field == fields.end())
      unknown.push_back(fmt::format("'{}'", shown(key)));
    else
      read_value(*field, item.value(), fmt::format("{}: {}", name, field->name));
  }
  if (!unknown.empty())
    fail(ExitStatus::data, "{}: unknown fields {}; written by another version?", name,
         fmt::join(unknown, ", "));
  for (const Option& field : fields)
    if (field.chosen && !json.contains(field.name)) missing.push_back(field.name);
  if (!missing.empty())
    fail(ExitStatus::data, "{}: {} {} missing", name, fmt::join(missing, ", "),
         missing.size() == 1 ? "is" : "are");
}

}  // namespace

nlohmann::ordered_json to_json(const std::vector<Option>& fields) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Option& option : fields) {
    if (is_auto(option)) {
      json[option.name] = "auto";
      continue;
    }
    std::visit(
        [&](auto target) {
          using T = decltype(target);
          if constexpr (std::is_same_v<T, EnumTarget>) {
            if (target.is_list())
              json[option.name] = target.values();
            else
              json[option.name] = target.values()[0];
          } else if constexpr (!std::is_same_v<T, std::monostate>) {
            json[option.name] = *target;
          }
        },
        option.target);
  }
  return json;
}

void from_json(const nlohmann::ordered_json& json, const std::vector<Option>& fields,
               const std::string& name) {
  read(json, fields, name);
}
void from_json(const nlohmann::json& json, const std::vector<Option>& fields,
               const std::string& name) {
  read(json, fields, name);
}

}  // namespace nmt::config
