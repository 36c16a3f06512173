#include "http/request_fields.h"

#include "text/utf8.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

namespace nmt::http {
namespace {

[[noreturn]] void refuse(const std::string& message, int status = 400) {
  throw RequestError{status, message};
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string repaired(std::string text) {
  if (is_valid_utf8(text)) return text;
  std::string result;
  repair_utf8(text, result);
  return result;
}

// Later values of a name win, but for "q", whose values are an array.
void read_form(std::string_view form, nlohmann::json& values) {
  while (!form.empty()) {
    const std::size_t end = std::min(form.find('&'), form.size());
    const std::string_view field = form.substr(0, end);
    form.remove_prefix(std::min(end + 1, form.size()));
    if (field.empty()) continue;
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string name = repaired(decode_url(field.substr(0, equals)));
    std::string value = repaired(decode_url(field.substr(std::min(equals + 1, field.size()))));
    nlohmann::json& place = values[name];
    if (name != "q" || place.is_null()) {
      place = std::move(value);
    } else {
      if (!place.is_array()) place = nlohmann::json::array({std::move(place)});
      place.push_back(std::move(value));
    }
  }
}

// A JSON object where a form was announced, as curl -d does without a header.
bool looks_like_json(std::string_view body) {
  const std::size_t begin = body.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && body[begin] == '{';
}

/// Reads JSON of at most `max_depth` nested values.
nlohmann::json read_json(const std::string& body) {
  constexpr int max_depth = 8;
  const auto refuse_depth = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json&) {
    const bool opens = event == nlohmann::json::parse_event_t::object_start ||
                       event == nlohmann::json::parse_event_t::array_start;
    if (opens && depth >= max_depth) refuse("the JSON of the request is nested too deeply");
    return true;
  };
  try {
    return nlohmann::json::parse(body, refuse_depth);
  } catch (const nlohmann::json::exception&) {
    refuse("the body of the request is not valid JSON");
  }
}

}  // namespace

std::string decode_url(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      result += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 &&
               hex(text[i + 2]) >= 0) {
      result += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

RequestFields::RequestFields(const HttpRequest& request) {
  std::string type = request.content_type.substr(0, request.content_type.find(';'));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  while (!type.empty() && type.back() == ' ') type.pop_back();
  nlohmann::json query = nlohmann::json::object();
  read_form(request.query, query);
  if (type == "application/json" || (type.empty() && looks_like_json(request.body))) {
    values_ = read_json(request.body);
    if (!values_.is_object()) refuse("the JSON of the request is no object");
  } else if (type == "application/x-www-form-urlencoded" ||
             (type.empty() && request.body.empty())) {
    if (looks_like_json(request.body))
      refuse(
          "the body is JSON, but the content type is application/x-www-form-urlencoded; send the "
          "header 'Content-Type: application/json'",
          415);
    read_form(request.body, values_);
  } else {
    refuse(fmt::format("{}; send JSON with the header 'Content-Type: application/json', or a form "
                       "with 'Content-Type: application/x-www-form-urlencoded'",
                       type.empty() ? "the request has no content type"
                                    : fmt::format("content type '{}' is not supported",
                                                  repaired(type.substr(0, 100)))),
           415);
  }
  values_.insert(query.begin(), query.end());  // the body's values stay
}

std::optional<std::string> RequestFields::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) refuse(fmt::format("parameter {} must be a text", name));
  return found->get<std::string>();
}

std::string RequestFields::required(const std::string& name) const {
  const std::optional<std::string> value = text(name);
  if (!value || value->empty()) refuse(fmt::format("Invalid request: missing {} parameter", name));
  return *value;
}

std::optional<long long> RequestFields::integer(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->is_null() || *found == "") return std::nullopt;
  long long value = 0;
  const bool is_large =
      found->is_number_unsigned() &&
      found->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<long long>::max()};
  if (found->is_number_integer() && !is_large) return found->get<long long>();
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  refuse(fmt::format("parameter {} must be an integer", name));
}

bool RequestFields::flag(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0" || text.empty()) return false;
  }
  refuse(fmt::format("parameter {} must be true or false", name));
}

std::vector<std::string> RequestFields::texts(const std::string& name, std::size_t most,
                                              bool& is_array) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->is_null())
    refuse(fmt::format("Invalid request: missing {} parameter", name));
  is_array = found->is_array();
  if (found->is_string()) return {found->get<std::string>()};
  if (!is_array) refuse(fmt::format("parameter {} must be a text or texts", name));
  if (found->size() > most)
    refuse(fmt::format("parameter {} has {} texts; this server takes at most {}", name,
                       found->size(), most));
  std::vector<std::string> result;
  for (const nlohmann::json& each : *found) {
    if (!each.is_string()) refuse(fmt::format("parameter {} must be a text or texts", name));
    result.push_back(each.get<std::string>());
  }
  return result;
}

}  // namespace nmt::http
