#include "http/server.h"

#include "core/error.h"
#include "core/log.h"

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

namespace nmt::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto accept_pause = std::chrono::milliseconds(100);  // after an error of accept()

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

/// `state` stands above `io`, whose connections use it.
struct HttpServer::Impl {
  Impl(const ServeSpec& spec, Metrics& metrics, Handlers handlers)
      : state{spec, metrics, std::move(handlers)},
        io(spec.http_threads),
        acceptor(asio::make_strand(io)),
        signals(acceptor.get_executor()),
        timer(acceptor.get_executor()) {}

  void listen();
  void accept();
  void begin_drain();
  void wait_for_drain(Clock::time_point end);

  ServerState state;
  std::string address;  // as in the log
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::signal_set signals;
  asio::steady_timer timer;
};

void HttpServer::Impl::listen() {
  const auto refuse = [&](const std::string& why) {
    fail(ExitStatus::usage, "cannot listen on {} port {}: {}", state.spec.host, state.spec.port,
         why);
  };
  if (state.spec.host.empty()) refuse("no address is given; 0.0.0.0 and :: are all addresses");
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(state.spec.host, std::to_string(state.spec.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) refuse(error.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) refuse(error.message());
  const tcp::endpoint local = acceptor.local_endpoint(error);
  const std::string name = local.address().to_string();
  address =
      fmt::format(fmt::runtime(local.address().is_v6() ? "[{}]:{}" : "{}:{}"), name, local.port());
}

void HttpServer::Impl::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](error_code error, tcp::socket socket) {
    if (state.draining || !acceptor.is_open()) return;
    if (!error) {
      serve_connection(state, std::move(socket));
      return accept();
    }
    // Too many open files, for example: connections that close make room.
    timer.expires_after(accept_pause);
    timer.async_wait([this](error_code) {
      if (!state.draining) accept();
    });
  });
}

void HttpServer::Impl::begin_drain() {
  if (state.draining) return;
  error_code error;
  state.draining = true;
  acceptor.close(error);
  state.handlers.on_drain();
  signals.async_wait([this](error_code failed, int) {
    if (!failed) io.stop();
  });
  wait_for_drain(Clock::now() + duration(state.spec.limits.drain_timeout));
}

void HttpServer::Impl::wait_for_drain(Clock::time_point end) {
  if (state.open_requests == 0 || Clock::now() >= end) {
    if (state.open_requests > 0)
      log::warn("{} requests were not finished in time", state.open_requests.load());
    return io.stop();
  }
  timer.expires_after(std::chrono::milliseconds(10));
  timer.async_wait([this, end](error_code) { wait_for_drain(end); });
}

HttpServer::HttpServer(const ServeSpec& spec, Metrics& metrics, Handlers handlers)
    : impl_(std::make_unique<Impl>(spec, metrics, std::move(handlers))) {
  impl_->listen();
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  error_code error;
  return impl_->acceptor.local_endpoint(error).port();
}

void HttpServer::stop() {
  asio::post(impl_->acceptor.get_executor(), [this] { impl_->begin_drain(); });
}

void HttpServer::run() {
  Impl& impl = *impl_;
  impl.signals.add(SIGTERM);
  impl.signals.add(SIGINT);
  impl.signals.async_wait([&](error_code error, int) {
    if (!error) impl.begin_drain();
  });
  impl.accept();
  log::info("listening on http://{}", impl.address);
  std::vector<std::thread> threads;
  for (int i = 1; i < impl.state.spec.http_threads; ++i)
    threads.emplace_back([&] { impl.io.run(); });
  impl.io.run();
  for (std::thread& thread : threads) thread.join();
  error_code error;
  impl.signals.clear(error);  // the next signal ends the process
}

}  // namespace nmt::http
