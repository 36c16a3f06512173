#include "config/fields.h"
#include "http/serve.h"

namespace nmt::http {
namespace {

using config::in_group;
using config::Option;

std::vector<Option> limit_fields(Limits& limits) {
  return in_group(
      "limits",
      {Option("max-body", &limits.max_body, "bytes of a request body").range(1, 1e9),
       Option("max-header", &limits.max_header, "bytes of a request header")
           .range(256, longest_header),
       Option("max-pending-bytes", &limits.max_pending_bytes,
              "bytes of request bodies held at a time")
           .range(1, 1e12),
       Option("max-connections", &limits.max_connections, "open connections").range(1, 100000),
       Option("max-queue", &limits.max_queue, "sentences that wait for translation").range(1, 1e7),
       Option("max-texts", &limits.max_texts, "texts of a request").range(1, 1e6),
       Option("max-characters", &limits.max_characters,
              "characters of a request; 0: as many as its body has")
           .range(0, 1e9),
       Option("max-sentence", &limits.max_sentence,
              "characters of a sentence; longer sentences are split")
           .range(10, 100000),
       Option("max-alternatives", &limits.max_alternatives,
              "alternatives of a request; auto: beam-size - 1, at most 3")
           .range(0, 63)
           .chosen_by_default(),
       Option(
           "requests-per-minute", &limits.requests_per_minute,
           "translations and detections per minute of an address, or of an API key; 0: unlimited")
           .range(0, 1e6),
       Option("request-timeout", &limits.request_timeout, "seconds until a translation is given up")
           .range(0.01, 86400),
       Option("read-timeout", &limits.read_timeout,
              "seconds to receive a request, and to send its response")
           .range(0.01, 86400),
       Option("idle-timeout", &limits.idle_timeout, "seconds until an idle connection is closed")
           .range(0.01, 86400),
       Option("drain-timeout", &limits.drain_timeout,
              "seconds to finish open requests after SIGTERM")
           .range(0, 86400)});
}

}  // namespace

ServeSpec::ServeSpec() {
  translate.text_rules.preserve = {Preserved::all};
  translate.text_rules.repetition_guard = true;
  translate.text_rules.recase = true;
  translate.search.mini_batch = 24;  // full speed with less memory than 64
}

std::vector<Option> fields(ServeSpec& spec) {
  return config::joined(
      {in_group("files",
                {Option("models", &spec.models,
                        "model directory with its languages, or folder of such directories")
                     .alias({"m", "model"})
                     .meta("EN-DE=DIR|FOLDER..."),
                 Option("glossaries", &spec.glossaries,
                        "glossary with its languages: terms and translations, separated by a tab")
                     .meta("EN-DE=FILE..."),
                 Option("api-keys", &spec.api_keys,
                        "accepted API keys, one per line; none: no key is needed")
                     .meta("FILE")}),
       in_group(
           "server",
           {Option("host", &spec.host, "address to listen on").alias({"a"}),
            Option("port", &spec.port, "port to listen on; 0: any free port")
                .alias({"p"})
                .range(0, 65535),
            Option("cors-origin", &spec.cors_origin,
                   "origin that browsers may call from; *: any; empty: none")
                .meta("ORIGIN"),
            Option("http-threads", &spec.http_threads, "threads for connections").range(1, 256),
            Option("access-log", &spec.access_log, "log one line per request, without texts"),
            Option("web-ui", &spec.web_ui, "web page at /"),
            Option("latency-target", &spec.latency_target,
                   "milliseconds within which batches start and finish if possible")
                .range(0, 60000),
            Option("unload-after", &spec.unload_after,
                   "seconds until an unused model is unloaded; 0: never")
                .range(0, 1e9),
            Option("reload-interval", &spec.reload_interval,
                   "seconds between checks for changed models; 0: never")
                .range(0, 1e6)}),
       limit_fields(spec.limits),
       config::without({"n-best", "alignment", "shortlist", "maxi-batch", "maxi-batch-sort"},
                       config::fields(spec.translate.search, ServeSpec().translate.search)),
       config::without({"glossary"}, config::with_defaults(
                                         spec.translate.text_rules,
                                         [](TextSpec& rules) { return app::fields(rules); },
                                         ServeSpec().translate.text_rules)),
       config::decoding_fields(spec.translate.compute)});
}

}  // namespace nmt::http
