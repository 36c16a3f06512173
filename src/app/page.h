#pragma once

#include "core/file.h"

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// A page that needs nothing beside itself: a template of src/app/pages with its styles, scripts
/// and data put in place of {{name}}. The data stand in the page as JSON; characters that could end
/// a script element are escaped there, whatever the text holds.
std::string make_page(std::string_view template_name, const nlohmann::ordered_json& data);

/// JSON as a file: valid UTF-8 whatever the texts hold, with a final newline.
std::string json_text(const nlohmann::ordered_json& data);

/// Where a page goes (--output), and its numbers too where that is asked for (--json). Made before
/// the work, so that a wrong name is told at once. Errors: as AtomicFile.
class PageOutput {
 public:
  PageOutput(const std::string& page, const std::string& json);
  void write(std::string_view page, const nlohmann::ordered_json& data);

 private:
  AtomicFile page_;
  std::optional<AtomicFile> json_;
};

}  // namespace nmt::app
