#pragma once

#include "http/message.h"

#include <string>
#include <string_view>

namespace nmt::http {

/// A file of the web page, embedded in the program.
struct WebFile {
  std::string_view content_type, text;
  std::string tag;  ///< its ETag, with quotes
};

/// The file at a path, "/" being the page itself; null: there is none.
const WebFile* web_file(std::string_view path);
/// The file; 304 where the client has it. The page may load files of this server alone, and no page
/// may frame it.
HttpResponse web_response(const WebFile& file, const std::string& if_none_match);

}  // namespace nmt::http
