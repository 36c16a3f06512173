#include "http/web_files.h"

#include "core/hash/checksum.h"
#include "http/web/embedded.h"

#include <functional>
#include <map>

#include <fmt/format.h>

namespace nmt::http {
namespace {

constexpr const char* policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

}  // namespace

const WebFile* web_file(std::string_view path) {
  static const auto files = [] {
    std::map<std::string, WebFile, std::less<>> result;
    for (const auto& [name, text] : web::files) {
      const std::string place = name == "index.html" ? "/" : "/ui/" + std::string(name);
      result[place] = {type_of(name), text,
                       fmt::format("\"{:08x}-{:x}\"", crc32(text), text.size())};
    }
    return result;
  }();
  const auto found = files.find(path);
  return found == files.end() ? nullptr : &found->second;
}

HttpResponse web_response(const WebFile& file, const std::string& if_none_match) {
  HttpResponse response;
  response.content_type = file.content_type;
  response.headers = {{"ETag", file.tag},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", policy},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"}};
  if (if_none_match.find(file.tag) != std::string::npos)
    response.status = 304;
  else
    response.body = file.text;
  return response;
}

}  // namespace nmt::http
