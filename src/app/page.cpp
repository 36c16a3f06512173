#include "app/page.h"

#include "app/pages/embedded.h"
#include "core/error.h"
#include "core/nlohmann.h"

namespace nmt::app {
namespace {

std::string_view file(std::string_view name) {
  for (const auto& [known, text] : pages::files)
    if (known == name) return text;
  NMT_FAIL("no page file is named {}", name);
}

std::string script_safe(const nlohmann::ordered_json& data) {
  std::string safe;
  for (const char c : data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string make_page(std::string_view template_name, const nlohmann::ordered_json& data) {
  const std::string_view text = file(template_name);
  std::string page;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find("{{", at);
    page += text.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open);
    const std::string_view name = text.substr(open + 2, close - open - 2);
    page += name == "data" ? script_safe(data) : std::string(file(name));
    at = close + 2;
  }
  return page;
}

std::string json_text(const nlohmann::ordered_json& data) {
  return dump_json(data, 1) + "\n";
}

PageOutput::PageOutput(const std::string& page, const std::string& json) : page_(page) {
  if (!json.empty()) json_.emplace(json);
}

void PageOutput::write(std::string_view page, const nlohmann::ordered_json& data) {
  if (json_) {
    json_->write(json_text(data));
    json_->commit();
  }
  page_.write(page);
  page_.commit();
}

}  // namespace nmt::app
