#include "http/connection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

namespace nmt::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t discard_limit = 4'000'000;  // bytes of a refused body that are read
constexpr std::size_t ahead_bytes = 4096;         // of further requests that are read at a time
constexpr auto discard_timeout = std::chrono::seconds(2);

std::chrono::nanoseconds duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

std::string text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

// The path and the query of "http://host/path?query", the form of requests through a proxy.
std::string without_host(const std::string& target) {
  for (const beast::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() ||
        !beast::iequals(beast::string_view(target).substr(0, scheme.size()), scheme))
      continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    return target[end] == '/' ? target.substr(end) : "/" + target.substr(end);
  }
  return target;
}

// Removes the empty lines that a server should ignore before a request (RFC 9112, 2.2).
void skip_empty_lines(beast::flat_buffer& buffer) {
  const auto* const data = static_cast<const char*>(buffer.data().data());
  std::size_t at = 0;
  while (at + 1 < buffer.size() && data[at] == '\r' && data[at + 1] == '\n') at += 2;
  buffer.consume(at);
}

/// One connection: reads a request, hands it on, writes the answer, and again. All members are used
/// in the strand of the stream.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerState& state, tcp::socket socket) : state_(state), stream_(std::move(socket)) {
    error_code error;
    const tcp::endpoint peer = stream_.socket().remote_endpoint(error);
    if (!error) client_ = peer.address().to_string();
    stream_.socket().set_option(tcp::no_delay(true), error);
    open_ = ++state_.metrics.connections;
  }
  ~Connection() {
    release_request();
    --state_.metrics.connections;
  }

  void start() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      if (self->open_ > self->state_.spec.limits.max_connections) {
        ++self->state_.metrics.refused_connections;
        return self->refuse_and_close(503, "too many connections; try again later");
      }
      self->begin_request();
    });
  }

 private:
  using Parser = beast_http::request_parser<beast_http::string_body>;
  using Message = beast_http::response<beast_http::string_body>;

  const Limits& limits() const { return state_.spec.limits; }

  // A connection may be idle for longer than a request may take to arrive.
  void await_next_request() {
    if (buffer_.size() > 0) return begin_request();
    stream_.expires_after(duration(limits().idle_timeout));
    read_some(&Connection::begin_request);
  }

  void begin_request() {
    stream_.expires_after(duration(limits().read_timeout));
    read_first_line();
  }
  void read_first_line() {
    skip_empty_lines(buffer_);
    if (buffer_.size() > 1) return read_header();
    read_some(&Connection::read_first_line);
  }
  // Appends what arrives next to the buffer and calls `then`.
  void read_some(void (Connection::*then)()) {
    stream_.async_read_some(buffer_.prepare(room_ahead()),
                            [self = shared_from_this(), then](error_code error, std::size_t bytes) {
                              if (error) return self->on_broken_off(error);
                              self->buffer_.commit(bytes);
                              ((*self).*then)();
                            });
  }
  std::size_t room_ahead() const {
    return std::min(buffer_.max_size() - buffer_.size(), ahead_bytes);
  }
  // The client has closed the connection, or is too slow.
  void on_broken_off(error_code error) {
    if (parser_ && error == asio::error::eof) return on_header(beast_http::error::partial_message);
    close();
  }

  void read_header() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits().max_header));
    parser_->body_limit(static_cast<std::uint64_t>(limits().max_body));
    header_bytes_ = 0;
    read_more_of_header();
  }
  // header_limit() bounds what the parser is given at a time, but it takes complete fields out of
  // the buffer: their bytes count here. It never needs more than a full buffer.
  void read_more_of_header() {
    error_code error;
    const std::size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    header_bytes_ += used;
    const bool needs_more = error == beast_http::error::need_more;
    if (header_bytes_ + (needs_more ? buffer_.size() : 0) >
        static_cast<std::size_t>(limits().max_header))
      return on_header(beast_http::error::header_limit);
    if (needs_more) return read_some(&Connection::read_more_of_header);
    on_header(error);
  }

  void on_header(error_code error) {
    if (error == beast_http::error::header_limit)
      return refuse_and_close(431, fmt::format("the header exceeds {} bytes", limits().max_header));
    if (error == beast_http::error::body_limit) return refuse_body();
    if (error &&
        error.category() == beast_http::make_error_code(beast_http::error::bad_method).category())
      return refuse_and_close(400, "this is not a valid HTTP request");
    if (error) return;  // gone, or too slow
    const auto& head = parser_->get();
    keep_alive_ = head.keep_alive() && !state_.draining;
    is_head_ = head.method() == beast_http::verb::head;
    version_ = head.version() == 10 ? 10 : 11;
    if (const auto coding = head[beast_http::field::transfer_encoding];
        !coding.empty() && !beast::iequals(coding, "chunked"))
      return refuse_and_close(501, "only the transfer coding chunked is supported");
    if (const auto coding = head[beast_http::field::content_encoding];
        !coding.empty() && !beast::iequals(coding, "identity"))
      return refuse_and_close(415, "encoded bodies are not supported; send the body as it is");
    if (const auto length = parser_->content_length();
        length && *length > static_cast<std::uint64_t>(limits().max_body))
      return refuse_body();
    ++state_.open_requests;
    counted_ = true;
    if (!has_room_for(parser_->content_length().value_or(0))) return refuse_for_room();
    if (version_ == 11 && beast::iequals(head[beast_http::field::expect], "100-continue"))
      return invite_body();
    read_body();
  }

  void refuse_body() {
    refuse_and_close(413, fmt::format("the body exceeds {} bytes", limits().max_body));
  }

  void refuse_for_room() { refuse_and_close(503, "the server holds too many requests", true); }

  bool has_room_for(std::uint64_t bytes) const {
    return bytes == 0 || state_.metrics.pending_bytes + static_cast<std::int64_t>(bytes) <=
                             limits().max_pending_bytes;
  }
  // Counts what has arrived of the body. False: there is no room for it.
  bool hold_body() {
    const auto bytes = static_cast<std::int64_t>(parser_->get().body().size());
    const std::int64_t added = bytes - std::exchange(held_, bytes);
    return (state_.metrics.pending_bytes += added) <= limits().max_pending_bytes || added == 0;
  }
  void release_request() {
    if (!counted_) return;
    counted_ = false;
    state_.metrics.pending_bytes -= std::exchange(held_, 0);
    --state_.open_requests;
  }

  void invite_body() {
    static const std::string line = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(line),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (!error) self->read_body();
                      });
  }

  void read_body() {
    parser_->eager(true);
    read_more_of_body();
  }
  void read_more_of_body() {
    if (parser_->is_done()) return on_body({});
    beast_http::async_read_some(stream_, buffer_, *parser_,
                                [self = shared_from_this()](error_code error, std::size_t) {
                                  if (error) return self->on_body(error);
                                  if (!self->hold_body()) return self->refuse_for_room();
                                  self->read_more_of_body();
                                });
  }

  void on_body(error_code error) {
    if (error == beast_http::error::body_limit) return refuse_body();
    if (error &&
        error.category() == beast_http::make_error_code(beast_http::error::bad_method).category())
      return refuse_and_close(400, "this is not a valid HTTP request");
    if (error) return;
    stream_.expires_never();
    HttpRequest request = head_of_request();
    request.body = std::move(parser_->get().body());
    canceled_ = std::make_shared<std::atomic<bool>>(false);
    watch();
    state_.handlers.handle(request, canceled_,
                           [self = shared_from_this(), count = ++answers_](HttpResponse response) {
                             asio::post(self->stream_.get_executor(),
                                        [self, count, response = std::move(response)]() mutable {
                                          self->write(count, std::move(response));
                                        });
                           });
  }

  // What has been read of it: a request may be refused before its header ends.
  HttpRequest head_of_request() const {
    HttpRequest request;
    if (!parser_) return request;
    const auto& head = parser_->get();
    request.method = text_of(head.method_string());
    const std::string target = without_host(text_of(head.target()));
    const std::size_t question = target.find('?');
    request.path = target.substr(0, question);
    if (question != std::string::npos) request.query = target.substr(question + 1);
    request.content_type = text_of(head[beast_http::field::content_type]);
    request.if_none_match = text_of(head[beast_http::field::if_none_match]);
    request.client = client_;
    return request;
  }

  // Notices when the client closes the connection, or its sending half, before its answer is there.
  // What arrives before belongs to the next request.
  void watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(),
                                                         canceled = canceled_](error_code error) {
      if (error || canceled != self->canceled_) return;
      beast::flat_buffer& buffer = self->buffer_;
      const std::size_t room = self->room_ahead();
      if (room == 0) return;
      const auto got = ::recv(self->stream_.socket().native_handle(), buffer.prepare(room).data(),
                              room, MSG_DONTWAIT);
      if (got > 0) buffer.commit(static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        *canceled = true;
      else
        self->watch();
    });
  }

  void write(std::uint64_t count, HttpResponse response) {
    if (count != answers_ || written_ == count) return;
    written_ = count;
    canceled_.reset();
    error_code error;
    stream_.socket().cancel(error);  // watch()
    send(std::move(response), keep_alive_);
  }

  void send(HttpResponse response, bool keep_alive) {
    message_.emplace(static_cast<beast_http::status>(response.status), version_);
    message_->set(beast_http::field::server, "nmt");
    message_->set(beast_http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message_->set(name, value);
    message_->keep_alive(keep_alive && !state_.draining);
    if (response.status != 204 && response.status != 304) {
      message_->body() = std::move(response.body);
      message_->prepare_payload();
    } else {
      message_->erase(beast_http::field::content_type);
    }
    if (is_head_) message_->body().clear();
    stream_.expires_after(duration(limits().read_timeout));
    const auto written = [self = shared_from_this()](error_code failed, std::size_t) {
      self->on_sent(failed);
    };
    beast_http::async_write(stream_, *message_, written);
  }

  void on_sent(error_code error) {
    const bool again = !error && message_->keep_alive() && !refused_;
    message_.reset();
    parser_.reset();
    release_request();
    if (error) return;
    if (refused_) return discard();
    if (!again) return close();
    await_next_request();
  }

  void refuse_and_close(int status, const std::string& message, bool retry = false) {
    refused_ = true;
    is_head_ = parser_ && parser_->get().method() == beast_http::verb::head;
    HttpResponse response = error_response(status, message);
    if (status == 503 || retry) response.headers.emplace_back("Retry-After", "1");
    send(state_.handlers.refuse(head_of_request(), std::move(response)), false);
  }

  // Reads what the client still sends for a short time: closing at once would reset the connection,
  // and the client would not see the answer.
  void discard() {
    error_code error;
    stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    stream_.expires_after(discard_timeout);
    buffer_.clear();
    discard_more();
  }
  void discard_more() {
    scratch_.resize(16384);
    stream_.async_read_some(asio::buffer(scratch_),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              self->discarded_ += bytes;
                              if (error || self->discarded_ > discard_limit) return self->close();
                              self->discard_more();
                            });
  }

  void close() {
    error_code error;
    stream_.socket().shutdown(tcp::socket::shutdown_both, error);
    stream_.close();
  }

  ServerState& state_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{longest_header};
  std::optional<Parser> parser_;
  std::optional<Message> message_;
  std::string client_;
  std::shared_ptr<std::atomic<bool>> canceled_;
  std::vector<char> scratch_;
  std::int64_t open_ = 0, held_ = 0;
  std::size_t header_bytes_ = 0, discarded_ = 0;
  std::uint64_t answers_ = 0, written_ = 0;
  unsigned version_ = 11;  // of HTTP
  bool keep_alive_ = false, is_head_ = false, refused_ = false, counted_ = false;
};

}  // namespace

void serve_connection(ServerState& state, tcp::socket socket) {
  std::make_shared<Connection>(state, std::move(socket))->start();
}

}  // namespace nmt::http
