#include "app/page.h"

#include "app/pages/embedded.h"
#include "app/train/directory_store.h"
#include "core/error.h"
#include "core/nlohmann.h"

#include <filesystem>
#include <map>

namespace nmt::app {
namespace {

namespace fs = std::filesystem;

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
  return data.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void check_outputs(const std::string& model, std::initializer_list<NamedOutput> outputs) {
  // What cannot be resolved is refused where it is opened.
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    const fs::path full = fs::absolute(path, error);
    const fs::path found = fs::weakly_canonical(full, error);
    return error ? full : found;
  };
  const fs::path directory = resolved(model);
  std::map<fs::path, const char*> named;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    const fs::path file = resolved(path);
    std::error_code error;
    if (!fs::exists(file, error) || fs::is_regular_file(file, error)) {
      const auto [before, is_new] = named.emplace(file, option);
      if (!is_new)
        fail(ExitStatus::usage, "{} and {}: both are {}; name two files", before->second, option,
             path);
    }
    const fs::path within = file.lexically_relative(directory);
    const std::string first = within.empty() ? "" : within.begin()->string();
    if (belongs_to_model(first))
      fail(ExitStatus::usage, "{}: {} is a file of the model {}; name another one", option, path,
           model);
  }
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
