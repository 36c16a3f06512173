#include "http/metrics.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

namespace nmt::http {
namespace {

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class Writer {
 public:
  template <class Value>
  void add(const char* name, const char* type, const char* help, Value value) {
    head(name, type, help);
    fmt::format_to(std::back_inserter(text), "{} {}\n", name, value);
  }
  void head(const char* name, const char* type, const char* help) {
    fmt::format_to(std::back_inserter(text), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  std::string text;
};

}  // namespace

void Metrics::count_request(const std::string& path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{path, status}];
  Durations& durations = durations_[path];
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), seconds);
  ++durations.counts[static_cast<std::size_t>(bound - bounds.begin())];
  durations.sum += seconds;
}

std::string Metrics::text(const serve::Batcher::Statistics& batcher,
                          const serve::ModelPool::Statistics& pool) const {
  Writer out;
  const auto back = [&] { return std::back_inserter(out.text); };
  {
    const std::lock_guard lock(mutex_);
    out.head("nmt_http_requests_total", "counter", "Requests by path and status.");
    for (const auto& [key, count] : requests_)
      fmt::format_to(back(), "nmt_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                     key.second, count);
    const char* const name = "nmt_http_request_duration_seconds";
    out.head(name, "histogram", "Seconds from the end of a request to its response.");
    for (const auto& [path, durations] : durations_) {
      std::uint64_t total = 0;
      for (std::size_t i = 0; i <= bounds.size(); ++i) {
        total += durations.counts[i];
        const std::string bound =
            i < bounds.size() ? fmt::format("{}", bounds[i]) : std::string("+Inf");
        fmt::format_to(back(), "{}_bucket{{path=\"{}\",le=\"{}\"}} {}\n", name, path, bound, total);
      }
      fmt::format_to(back(), "{0}_sum{{path=\"{1}\"}} {2}\n{0}_count{{path=\"{1}\"}} {3}\n", name,
                     path, durations.sum, total);
    }
  }
  out.add("nmt_texts_total", "counter", "Texts of accepted requests.", texts_.load());
  out.add("nmt_characters_total", "counter", "Characters of accepted requests.",
          characters_.load());
  out.add("nmt_sentences_total", "counter", "Sentences translated, once per model.",
          batcher.sentences);
  out.add("nmt_batches_total", "counter", "Batches translated.", batcher.batches);
  out.add("nmt_translating_seconds_total", "counter", "Seconds spent in models.",
          batcher.busy_seconds);
  out.add("nmt_queue_sentences", "gauge", "Sentences that wait or are in work.", batcher.waiting);
  out.head("nmt_jobs_total", "counter", "Translation jobs by result.");
  for (const auto& [result, count] :
       {std::pair{"done", batcher.done}, std::pair{"expired", batcher.expired},
        std::pair{"canceled", batcher.canceled}, std::pair{"failed", batcher.failed}})
    fmt::format_to(back(), "nmt_jobs_total{{result=\"{}\"}} {}\n", result, count);
  out.head("nmt_repetitions_total", "counter",
           "Degenerate translations, replaced by another hypothesis or cut.");
  fmt::format_to(back(),
                 "nmt_repetitions_total{{action=\"replaced\"}} {}\n"
                 "nmt_repetitions_total{{action=\"cut\"}} {}\n",
                 pool.replaced.load(), pool.cut.load());
  out.add("nmt_translated_in_parts_total", "counter",
          "Sentences translated around their preserved spans.", pool.in_parts.load());
  out.add("nmt_models_loaded", "gauge", "Models in memory.", pool.loaded.load());
  out.add("nmt_model_loads_total", "counter", "Models loaded.", pool.loads.load());
  out.add("nmt_model_load_failures_total", "counter", "Models that could not be loaded.",
          pool.failed_loads.load());
  out.add("nmt_connections", "gauge", "Open connections.", connections.load());
  out.add("nmt_refused_connections_total", "counter", "Connections over the limit.",
          refused_connections.load());
  out.add("nmt_pending_bytes", "gauge", "Bytes of request bodies held.", pending_bytes.load());
  out.add("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
          resident_bytes());
  return out.text;
}

}  // namespace nmt::http
