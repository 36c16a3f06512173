#pragma once

#include "http/message.h"
#include "http/metrics.h"
#include "http/serve.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include <boost/asio/ip/tcp.hpp>

namespace nmt::http {

/// What a transport does with requests.
struct Handlers {
  using Respond = std::function<void(HttpResponse)>;
  /// Answers a request, at once or later and from any thread. The request lives until it returns;
  /// *canceled becomes true when the client has closed the connection.
  std::function<void(const HttpRequest&, std::shared_ptr<const std::atomic<bool>> canceled,
                     const Respond&)>
      handle;
  /// Answers a request that breaks a limit, before it has arrived completely.
  std::function<HttpResponse(const HttpRequest&, HttpResponse)> refuse;
  std::function<void()> on_drain;  ///< after a signal or stop(), before open requests finish
};

/// What all connections of a server share; it outlives them.
struct ServerState {
  const ServeSpec& spec;
  Metrics& metrics;
  const Handlers handlers;
  std::atomic<bool> draining{false};
  std::atomic<std::int64_t> open_requests{0};
};

/// Serves one client until it or the server closes the connection. The executor of `socket` is a
/// strand.
void serve_connection(ServerState& state, boost::asio::ip::tcp::socket socket);

}  // namespace nmt::http
