#pragma once

#include "http/connection.h"

#include <cstdint>
#include <memory>

namespace nmt::http {

/// The transport: accepts connections and serves each ("http/connection.h"), over
/// Boost.Asio.
class HttpServer {
 public:
  /// Listens on spec.host and spec.port. Error (usage): the address cannot be used.
  HttpServer(const ServeSpec& spec, Metrics& metrics, Handlers handlers);
  ~HttpServer();

  /// The port in use, also where the spec has 0.
  std::uint16_t port() const;
  /// Serves until SIGTERM or SIGINT; then accepts no more, finishes open requests for at most
  /// drain_timeout seconds, and returns. A second signal returns at once;
  /// afterwards signals have their default action.
  void run();
  /// As SIGTERM. Thread-safe.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt::http
