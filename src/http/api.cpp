#include "http/api.h"

#include "core/error.h"
#include "core/log.h"
#include "http/translate_call.h"
#include "http/web_files.h"
#include "text/lines.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace nmt::http {
namespace {

using serve::Clock;

struct Endpoint {
  const char* path;
  const char* methods;  // for the header Allow
};
constexpr Endpoint endpoints[] = {
    {"/translate", "POST, OPTIONS"},      {"/detect", "POST, OPTIONS"},
    {"/languages", "GET, HEAD, OPTIONS"}, {"/health", "GET, HEAD, OPTIONS"},
    {"/metrics", "GET, HEAD, OPTIONS"},   {"/frontend/settings", "GET, HEAD, OPTIONS"},
    {"/translate_file", "POST, OPTIONS"}, {"/suggest", "POST, OPTIONS"}};

const WebFile* find_web_file(const ServeSpec& spec, const std::string& path) {
  return spec.web_ui ? web_file(path) : nullptr;
}

const Endpoint* find_endpoint(const std::string& path) {
  for (const Endpoint& endpoint : endpoints)
    if (path == endpoint.path) return &endpoint;
  return nullptr;
}

bool allows(const Endpoint& endpoint, const std::string& method) {
  return (std::string(", ") + endpoint.methods + ",").find(", " + method + ",") !=
         std::string::npos;
}

// Takes the same time wherever the texts differ.
bool same_secret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

std::vector<std::string> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  LineReader reader = LineReader::open(path);
  for (std::string line; reader.next(line);)
    if (!is_blank(line)) keys.push_back(line);
  if (keys.empty()) fail(ExitStatus::data, "{}: no API keys; expected one key per line", path);
  return keys;
}

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

/// A request between its arrival and its answer.
struct Api::Call {
  const HttpRequest* request = nullptr;  // during handle() alone
  std::string method, path;              // as they are logged
  Canceled canceled;
  Respond respond;
  Clock::time_point arrival = Clock::now();
  std::unique_ptr<TranslateCall> translation;
  std::size_t texts = 0, characters = 0;
  std::string source, target;  // once they are valid
};

HttpResponse error_response(int status, const std::string& message) {
  HttpResponse response;
  response.status = status;
  response.body = dumped({{"error", message}});
  return response;
}

Api::Api(const ServeSpec& spec, serve::ModelPool& pool, serve::Batcher& batcher, Metrics& metrics)
    : spec_(spec),
      pool_(pool),
      batcher_(batcher),
      metrics_(metrics),
      keys_(read_keys(spec.api_keys)),
      rate_limit_(spec.limits.requests_per_minute) {}

void Api::handle(const HttpRequest& request, Canceled canceled, const Respond& respond) {
  auto call = std::make_shared<Call>();
  call->request = &request;
  call->canceled = std::move(canceled);
  call->respond = respond;
  name(*call, request);
  try {
    route(call);
  } catch (const RequestError& error) {
    answer(call, error_response(error.status, error.message));
  } catch (const std::exception& error) {
    log::error("request path={}: {}", call->path, error.what());
    answer(call, error_response(500, "internal error"));
  }
  call->request = nullptr;
}

void Api::name(Call& call, const HttpRequest& request) const {
  const Endpoint* const endpoint = find_endpoint(request.path);
  const bool is_page = find_web_file(spec_, request.path);
  call.path = endpoint ? endpoint->path : is_page ? "/" : "other";
  call.method = "other";
  for (const char* known : {"GET", "HEAD", "POST", "OPTIONS"})
    if (request.method == known) call.method = known;
}

HttpResponse Api::refuse(const HttpRequest& request, HttpResponse response) {
  HttpResponse answered;
  auto call = std::make_shared<Call>();
  name(*call, request);
  call->respond = [&](HttpResponse given) { answered = std::move(given); };
  answer(call, std::move(response));
  return answered;
}

void Api::route(const CallPtr& call) {
  const HttpRequest& request = *call->request;
  static constexpr Endpoint page{"/", "GET, HEAD, OPTIONS"};
  const WebFile* const file = find_web_file(spec_, request.path);
  const Endpoint* const endpoint = file ? &page : find_endpoint(request.path);
  if (!endpoint) return answer(call, error_response(404, "Not found"));
  if (!allows(*endpoint, request.method)) {
    HttpResponse response = error_response(405, "Method not allowed");
    response.headers.emplace_back("Allow", endpoint->methods);
    return answer(call, std::move(response));
  }
  if (request.method == "OPTIONS") {
    HttpResponse response;
    response.status = 204;
    response.headers.emplace_back("Allow", endpoint->methods);
    return answer(call, std::move(response));
  }
  if (file) return answer(call, web_response(*file, request.if_none_match));
  if (call->path == "/translate") return translate(call);
  if (call->path == "/detect") return detect(call);
  if (call->path == "/languages") return answer(call, languages());
  if (call->path == "/frontend/settings") return answer(call, settings());
  if (call->path == "/metrics") {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.text(batcher_.statistics(), pool_.statistics());
    return answer(call, std::move(response));
  }
  if (call->path == "/health") {
    if (draining_) return answer(call, overloaded("the server is shutting down"));
    HttpResponse response;
    response.body = dumped({{"status", "ok"}});
    return answer(call, std::move(response));
  }
  answer(call,
         error_response(403, call->path == "/suggest" ? "this server does not take suggestions"
                                                      : "this server does not translate files"));
}

void Api::admit(const CallPtr& call, const RequestFields& fields) {
  const std::string key = keys_.empty() ? "" : fields.text("api_key").value_or("");
  bool known = keys_.empty();
  for (const std::string& each : keys_) known |= same_secret(key, each);
  // Requests without a valid key count for their address, so that keys cannot be guessed at any
  // speed.
  const std::string client = known && !keys_.empty() ? "key " + key : call->request->client;
  if (const int wait = rate_limit_.take(client); wait > 0) {
    HttpResponse response = error_response(
        429, fmt::format("too many requests; this server takes {} per minute and client",
                         spec_.limits.requests_per_minute));
    response.headers.emplace_back("Retry-After", fmt::format("{}", wait));
    throw response;
  }
  if (!known && key.empty())
    throw RequestError{403, "this server needs an API key; ask its operator"};
  if (!known) throw RequestError{403, "Invalid API key"};
  if (draining_) throw overloaded("the server is shutting down");
}

void Api::translate(const CallPtr& call) {
  try {
    const RequestFields fields(*call->request);
    admit(call, fields);
    call->translation = std::make_unique<TranslateCall>(fields, *pool_.map(), spec_.limits,
                                                        spec_.translate.text_rules.keeps_marked());
  } catch (HttpResponse& response) {
    return answer(call, std::move(response));
  }
  TranslateCall& translation = *call->translation;
  call->texts = translation.texts();
  call->characters = translation.characters();
  call->source = translation.source();
  call->target = translation.target();
  if (translation.sentences().empty()) {
    HttpResponse response;
    response.body = dumped(translation.response({}));
    metrics_.count_text(call->texts, call->characters);
    return answer(call, std::move(response));
  }
  serve::BatchJob job;
  job.route = translation.route();
  job.want = translation.want();
  job.sentences = translation.sentences();
  job.documents = translation.documents();
  job.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(spec_.limits.request_timeout));
  job.canceled = call->canceled;
  job.finish = [this, call](serve::JobStatus status, std::vector<serve::Hypotheses> results,
                            const std::string& message) {
    HttpResponse response;
    try {
      response = translation_response(*call, status, results, message);
    } catch (const std::exception& error) {
      log::error("request path={}: {}", call->path, error.what());
      response = error_response(500, "internal error");
    }
    answer(call, std::move(response));
  };
  if (!batcher_.submit(std::move(job)))
    return answer(call, overloaded("the server is busy; try again later"));
  metrics_.count_text(call->texts, call->characters);
}

HttpResponse Api::translation_response(const Call& call, serve::JobStatus status,
                                       const std::vector<serve::Hypotheses>& results,
                                       const std::string& message) const {
  HttpResponse response;
  switch (status) {
    case serve::JobStatus::done: response.body = dumped(call.translation->response(results)); break;
    case serve::JobStatus::expired:
      return overloaded(
          fmt::format("no translation within {} seconds", spec_.limits.request_timeout));
    case serve::JobStatus::canceled:
      return error_response(499, "the client has closed the connection");
    case serve::JobStatus::failed:
      log::error("translation failed source={} target={}: {}", call.source, call.target, message);
      return error_response(500, "the translation failed; the server's log says why");
  }
  return response;
}

void Api::detect(const CallPtr& call) {
  try {
    const RequestFields fields(*call->request);
    admit(call, fields);
    bool is_array = false;
    const std::vector<std::string> texts =
        fields.texts("q", static_cast<std::size_t>(spec_.limits.max_texts), is_array);
    call->texts = texts.size();
    call->characters = checked_characters(texts, spec_.limits);
    nlohmann::ordered_json found = nlohmann::ordered_json::array();
    for (const serve::Detection& detection :
         detect_texts(texts, serve::TextFormat::text, pool_.map()->sources()))
      found.push_back({{"confidence", detection.confidence}, {"language", detection.language}});
    HttpResponse response;
    response.body = dumped(found);
    answer(call, std::move(response));
  } catch (HttpResponse& response) {
    answer(call, std::move(response));
  }
}

HttpResponse Api::languages() const {
  const std::shared_ptr<const serve::ModelMap> map = pool_.map();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& language : map->languages())
    list.push_back({{"code", language},
                    {"name", serve::language_name(language)},
                    {"targets", map->targets(language)}});
  HttpResponse response;
  response.body = dumped(list);
  return response;
}

HttpResponse Api::settings() const {
  const std::shared_ptr<const serve::ModelMap> map = pool_.map();
  const std::string& source = map->sources().front();
  const std::vector<std::string> targets = map->targets(source);
  const auto other = std::find_if(targets.begin(), targets.end(),
                                  [&](const std::string& target) { return target != source; });
  const std::string target = other == targets.end() ? source : *other;
  const int characters = spec_.limits.max_characters;
  HttpResponse response;
  response.body =
      dumped({{"alternativesLimit", spec_.limits.max_alternatives},
              {"apiKeys", !keys_.empty()},
              {"charLimit", characters > 0 ? characters : -1},
              {"textsLimit", spec_.limits.max_texts},
              {"filesTranslation", false},
              {"frontendTimeout", 500},
              {"keyRequired", !keys_.empty()},
              {"language",
               {{"source", {{"code", source}, {"name", serve::language_name(source)}}},
                {"target", {{"code", target}, {"name", serve::language_name(target)}}}}},
              {"suggestions", false},
              {"supportedFilesFormat", nlohmann::ordered_json::array()}});
  return response;
}

HttpResponse Api::overloaded(const std::string& message) const {
  HttpResponse response = error_response(503, message);
  response.headers.emplace_back("Retry-After", fmt::format("{}", batcher_.retry_after()));
  return response;
}

void Api::add_common_headers(HttpResponse& response) const {
  if (spec_.cors_origin.empty()) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", spec_.cors_origin);
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
  response.headers.emplace_back("Access-Control-Max-Age", "86400");
}

void Api::answer(const CallPtr& call, HttpResponse response) {
  const double seconds = std::chrono::duration<double>(Clock::now() - call->arrival).count();
  metrics_.count_request(call->path, response.status, seconds);
  if (spec_.access_log)
    log::info(
        "request method={} path={} status={} texts={} characters={} source={} target={} "
        "seconds={:.4f}",
        call->method, call->path, response.status, call->texts, call->characters,
        call->source.empty() ? "-" : call->source, call->target.empty() ? "-" : call->target,
        seconds);
  add_common_headers(response);
  call->respond(std::move(response));
}

}  // namespace nmt::http
