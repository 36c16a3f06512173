#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace nmt::tools {

/// A page that needs nothing beside itself: a template of tools/pages with its styles, scripts and data put in place of {{name}}.
/// The data stand in the page as JSON; characters that could end a script element are escaped there, whatever the text holds.
std::string make_page(std::string_view template_name, const nlohmann::ordered_json& data);

/// JSON as a file: valid UTF-8 whatever the texts hold, with a final newline.
std::string json_text(const nlohmann::ordered_json& data);

}  // namespace nmt::tools
