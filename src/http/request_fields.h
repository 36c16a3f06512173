#pragma once

#include "core/nlohmann.h"
#include "http/message.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::http {

/// The parameters of a request: a JSON object or a URL-encoded form, and the query for those that
/// the body does not have.
class RequestFields {
 public:
  /// Throws RequestError: 400 for a body that is no JSON object, 415 for another content type.
  explicit RequestFields(const HttpRequest& request);

  /// A text, valid UTF-8; nothing where the field is missing or null. Throws RequestError (400):
  /// another type.
  std::optional<std::string> text(const std::string& name) const;
  /// A text that must be there. Throws RequestError (400).
  std::string required(const std::string& name) const;
  /// A number without fraction, also as text; nothing where the field is missing, null or "".
  /// Throws RequestError (400).
  std::optional<long long> integer(const std::string& name) const;
  /// true, also as text ("true", "1"); false where the field is missing, null, false, "false", "0"
  /// or "". Throws RequestError (400).
  bool flag(const std::string& name) const;
  /// A text or an array of texts; `is_array` says which. Throws RequestError (400): missing, of
  /// another type, or more than `most` texts.
  std::vector<std::string> texts(const std::string& name, std::size_t most, bool& is_array) const;

 private:
  nlohmann::json values_ = nlohmann::json::object();
};

/// Decodes %XX and "+" of a form.
std::string decode_url(std::string_view text);

}  // namespace nmt::http
