#include "http/serve.h"

#include "config/device.h"
#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "http/api.h"
#include "http/metrics.h"
#include "http/server.h"
#include "serve/batcher.h"
#include "serve/model_pool.h"
#include "tensor/cuda_device.h"

#include <algorithm>
#include <csignal>

#include <malloc.h>
#include <sys/resource.h>

namespace nmt::http {
namespace {

serve::ModelPoolOptions pool_options(const ServeSpec& spec) {
  return {spec.models, spec.glossaries, spec.translate, std::chrono::seconds(spec.unload_after),
          std::chrono::seconds(spec.reload_interval)};
}

// The lanes of each model (OpenTranslator::lanes).
int batches_at_a_time(const ComputeSpec& compute) {
  std::string why;
  const DeviceChoice::Kind device = parse_device(compute.device, "--device").kind;
  if (device == DeviceChoice::Kind::cuda ||
      (device == DeviceChoice::Kind::automatic && CudaDevice::is_usable(0, why)))
    return 1;
  if (compute.workers > 0) return compute.workers;
  return compute.cpu_threads > 0 ? compute.cpu_threads : allowed_processors();
}

serve::BatcherOptions batcher_options(const ServeSpec& spec) {
  return {static_cast<std::size_t>(spec.translate.search.mini_batch),
          static_cast<std::size_t>(spec.limits.max_queue),
          std::chrono::microseconds(static_cast<std::int64_t>(1000 * spec.latency_target)),
          batches_at_a_time(spec.translate.compute)};
}

// Alternatives are the other hypotheses of the beam. A wider beam for them would change the best
// one, so that a translation would depend on what else is requested.
int alternatives_of(const ServeSpec& spec) {
  constexpr int usual = 3;
  const int most = spec.translate.search.beam_size - 1, wanted = spec.limits.max_alternatives;
  if (wanted > most)
    fail(ExitStatus::usage,
         "max-alternatives is {} and beam-size {}: alternatives are hypotheses beside the best, so "
         "there are at most {}; lower max-alternatives or raise beam-size",
         wanted, spec.translate.search.beam_size, most);
  return wanted < 0 ? std::min(usual, most) : wanted;
}

// A connection is a file descriptor; the soft limit of many systems is 1024.
void allow_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void serve(const ServeSpec& spec) {
  std::signal(SIGPIPE, SIG_IGN);  // clients that go away
  allow_connections();
  ::mallopt(M_ARENA_MAX, 2);             // freed memory of one thread serves the others
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);  // blocks of tensors go back to the system when freed
  if (spec.limits.max_body > spec.limits.max_pending_bytes)
    fail(ExitStatus::usage,
         "max-body is {} and max-pending-bytes {}: no body may be larger than all together; lower "
         "max-body or raise max-pending-bytes",
         spec.limits.max_body, spec.limits.max_pending_bytes);
  ServeSpec checked = spec;
  app::check(checked.translate);
  checked.limits.max_alternatives = alternatives_of(spec);
  serve::ModelPool pool(pool_options(checked));
  Metrics metrics;
  serve::Batcher batcher(pool, batcher_options(checked));
  Api api(checked, pool, batcher, metrics);
  Handlers handlers;
  handlers.handle = [&](const HttpRequest& request, Api::Canceled canceled,
                        const Handlers::Respond& respond) {
    api.handle(request, std::move(canceled), respond);
  };
  handlers.refuse = [&](const HttpRequest& request, HttpResponse response) {
    return api.refuse(request, std::move(response));
  };
  handlers.on_drain = [&] {
    log::info("shutting down: finishing open requests");
    api.drain();
  };
  HttpServer http(checked, metrics, std::move(handlers));
  pool.on_device_failure([&] { http.stop(); });
  for (const serve::ModelEntry& entry : pool.map()->entries())
    log::info("model={} source={} target={}", entry.directory, entry.direction.source,
              entry.direction.target);
  http.run();
  batcher.abandon();  // nobody can be answered any longer
  batcher.stop();
  pool.on_device_failure(nullptr);
  if (const std::string loss = pool.device_failure(); !loss.empty()) NMT_FAIL("{}", loss);
  log::info("stopped");
}

}  // namespace nmt::http
