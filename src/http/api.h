#pragma once

#include "http/message.h"
#include "http/metrics.h"
#include "http/rate_limit.h"
#include "http/request_fields.h"
#include "http/serve.h"
#include "serve/batcher.h"
#include "serve/model_pool.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nmt::http {

/// LibreTranslate's API: what each request is answered with. Thread-safe.
class Api {
 public:
  /// All references outlive this object. Errors (usage), (data): the file of keys.
  Api(const ServeSpec& spec, serve::ModelPool& pool, serve::Batcher& batcher, Metrics& metrics);

  using Respond = std::function<void(HttpResponse)>;
  using Canceled = std::shared_ptr<const std::atomic<bool>>;
  /// Answers a request: `respond` is called once, at once or later in the thread of the batcher.
  /// When *canceled becomes true, nobody waits for the answer. Does not throw.
  void handle(const HttpRequest& request, Canceled canceled, const Respond& respond);
  /// Counts and logs the answer to a request that did not reach handle().
  HttpResponse refuse(const HttpRequest& request, HttpResponse response);
  /// From now on, translations are refused (503): the server ends.
  void drain() { draining_ = true; }

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  void name(Call& call, const HttpRequest& request) const;  // for log and metrics
  void route(const CallPtr& call);
  void translate(const CallPtr& call);
  void detect(const CallPtr& call);
  void admit(const CallPtr& call, const RequestFields& fields);
  HttpResponse translation_response(const Call& call, serve::JobStatus status,
                                    const std::vector<serve::Hypotheses>& results,
                                    const std::string& message) const;
  HttpResponse languages() const;
  HttpResponse settings() const;
  HttpResponse overloaded(const std::string& message) const;
  void answer(const CallPtr& call, HttpResponse response);
  void add_common_headers(HttpResponse& response) const;

  const ServeSpec& spec_;
  serve::ModelPool& pool_;
  serve::Batcher& batcher_;
  Metrics& metrics_;
  std::vector<std::string> keys_;
  RateLimit rate_limit_;
  std::atomic<bool> draining_{false};
};

}  // namespace nmt::http
