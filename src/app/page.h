#pragma once

#include "core/files/file.h"

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// A self-contained HTML page: a template of src/app/pages in which styles, scripts and data
/// replace {{name}}. The data are embedded as JSON, in which characters that could end a script
/// element are escaped.
std::string make_page(std::string_view template_name, const nlohmann::ordered_json& data);

/// Serializes JSON with a final newline; always valid UTF-8.
std::string json_text(const nlohmann::ordered_json& data);

/// The outputs of a page: HTML (--output) and, if requested, its data (--json). Opened before the
/// work, so that an invalid name is reported immediately. Errors: as AtomicFile.
class PageOutput {
 public:
  PageOutput(const std::string& page, const std::string& json);
  void write(std::string_view page, const nlohmann::ordered_json& data);

 private:
  AtomicFile page_;
  std::optional<AtomicFile> json_;
};

}  // namespace nmt::app
