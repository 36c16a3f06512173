#pragma once

#include <string>
#include <utility>
#include <vector>

namespace nmt::http {

/// A request as the API sees it.
struct HttpRequest {
  std::string method;  ///< "GET", "POST", ...
  std::string path;    ///< without the query
  std::string query;   ///< behind the "?"
  std::string content_type;
  std::string if_none_match;
  std::string body;
  std::string client;  ///< address, for limits alone
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// {"error": message}, as all errors are answered.
HttpResponse error_response(int status, const std::string& message);

/// A request that is answered with an error.
struct RequestError {
  int status = 400;
  std::string message;
};

}  // namespace nmt::http
