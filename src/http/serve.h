#pragma once

#include "app/translate/translate_spec.h"
#include "config/option.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::http {

/// Bytes of the longest header that a connection can read. The parser of Boost.Beast needs a header
/// in one buffer, and throws for a field of 64 KiB or more.
inline constexpr int longest_header = 65536;

/// Limits of single requests and of all together; docs/guide/serve.md explains them.
struct Limits {
  std::int64_t max_body = 1'000'000;            ///< bytes
  int max_header = 8192;                        ///< bytes
  std::int64_t max_pending_bytes = 64'000'000;  ///< bodies held at a time
  int max_connections = 1000;
  int max_queue = 4096;         ///< sentences
  int max_texts = 1000;         ///< of an array
  int max_characters = 0;       ///< of all texts of a request; 0: as the body allows
  int max_sentence = 500;       ///< characters; longer sentences are split
  int max_alternatives = -1;    ///< -1: what the beam has, at most 3
  int requests_per_minute = 0;  ///< of a client's address or key; 0: no limit
  double request_timeout = 10;  ///< seconds from the last byte of a request to its answer
  double read_timeout = 10;     ///< seconds for a request to arrive, and for an answer to be read
  double idle_timeout = 30;     ///< seconds until an unused connection is closed
  double drain_timeout = 10;    ///< seconds for open requests when the server ends
};

/// What nmt-serve needs to know.
struct ServeSpec {
  std::vector<std::string> models;      ///< "en-de=DIRECTORY", or folders of such names
  std::vector<std::string> glossaries;  ///< "en-de=FILE"
  std::string host = "127.0.0.1";
  int port = 5000;       ///< 0: any free one
  std::string api_keys;  ///< file with one key per line; "": none needed
  std::string cors_origin = "*";
  int http_threads = 1;
  bool access_log = true;
  bool web_ui = true;
  double latency_target = 100;  ///< milliseconds
  int unload_after = 0;         ///< seconds; 0: never
  int reload_interval = 5;      ///< seconds; 0: models are not checked
  Limits limits;
  app::TranslateSpec translate;  ///< search, text rules and compute of all models

  ServeSpec();
};

/// The options of nmt-serve.
std::vector<config::Option> fields(ServeSpec& spec);

/// Serves LibreTranslate's HTTP API until SIGTERM or SIGINT; then finishes the open requests.
/// Errors: (usage) as ModelPool, an address that cannot be used; (data) an unusable file of keys.
void serve(const ServeSpec& spec);

}  // namespace nmt::http
