#pragma once

#include "core/file.h"

#include <initializer_list>
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

/// An option that names a file to be written; "": none.
struct NamedOutput {
  const char* option;
  const std::string& path;
};
/// Errors (usage): two outputs are one file; an output is a file of the model directory (a page or
/// another new file in it is none).
void check_outputs(const std::string& model, std::initializer_list<NamedOutput> outputs);

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
