#pragma once

#include "server/http_message.h"
#include "server/metrics.h"
#include "server/serve.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace nmt::server {

/// The transport: HTTP/1.1 with limits and time-outs for each connection, over Boost.Beast.
class HttpServer {
 public:
  using Respond = std::function<void(HttpResponse)>;
  /// Answers a request, at once or later and from any thread. The request lives until it returns;
  /// *canceled becomes true when the client has closed the connection.
  using Handler = std::function<void(
      const HttpRequest&, std::shared_ptr<const std::atomic<bool>> canceled, const Respond&)>;
  /// Answers a request that breaks a limit, before it has arrived completely.
  using Refuse = std::function<HttpResponse(const HttpRequest&, HttpResponse)>;
  struct Handlers {
    Handler handle;
    Refuse refuse;
    std::function<void()> on_drain;  ///< after a signal or stop(), before open requests finish
  };

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

}  // namespace nmt::server
