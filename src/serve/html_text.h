#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace nmt::serve {

/// Character references, from "&" to ";".
using HtmlReferences = std::set<std::string, std::less<>>;

/// Resolves the character references of a text: numbers, and the names of Latin-1 and of usual
/// punctuation. Others stay as they are and are added to `unresolved`.
std::string decode_html(std::string_view text, HtmlReferences* unresolved = nullptr);
/// Replaces &, <, > and the no-break space by references; those of `unresolved` stay.
std::string encode_html(std::string_view text, const HtmlReferences& unresolved = {});

}  // namespace nmt::serve
