#pragma once

// nlohmann-json, compiled once: with <nlohmann/json.hpp> alone every file compiles the parser and
// the writer again, which takes 2 to 6 seconds. core/nlohmann.cpp has what is declared here.

#include <string>

#include <nlohmann/json.hpp>

/// The templates for one type of values: `linkage` is `extern` to declare them and empty to compile
/// them. Texts are parsed from a std::string or a std::string_view.
#define NMT_JSON_TEMPLATES(linkage, Json)                                                \
  linkage template class nlohmann::detail::serializer<Json>;                             \
  linkage template class nlohmann::detail::lexer<                                        \
      Json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;      \
  linkage template class nlohmann::detail::parser<                                       \
      Json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;      \
  linkage template class nlohmann::detail::lexer<                                        \
      Json, nlohmann::detail::iterator_input_adapter<std::string_view::const_iterator>>; \
  linkage template class nlohmann::detail::parser<                                       \
      Json, nlohmann::detail::iterator_input_adapter<std::string_view::const_iterator>>;

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
NMT_JSON_TEMPLATES(extern, nlohmann::json)
NMT_JSON_TEMPLATES(extern, nlohmann::ordered_json)

namespace nmt {

/// The text of a JSON value with a level of `indent` spaces. Bytes that are no UTF-8, which file
/// names may have, become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent);

}  // namespace nmt
