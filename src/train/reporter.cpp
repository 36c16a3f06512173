#include "nmt/train/reporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nmt/core/log.h"

namespace nmt::train {
namespace {

using Json = nlohmann::ordered_json;

Json begin(std::string_view event, const Progress& progress) {
  return Json{{"event", event}, {"updates", progress.updates}, {"epochs", progress.epochs}, {"labels", progress.labels}};
}

std::string figures_text(const Figures& f) {
  const double epoch = std::ceil(f.progress.epochs);  // a pass's last batch belongs to it
  const std::string left = f.seconds_left ? duration_text(*f.seconds_left) + " left | " : "";
  return fmt::format("epoch {:.0f} ({:.0f} %) | update {} | {}{:.0f} src + {:.0f} trg tokens/s | loss {:.4f} | ppl {:.2f} | lr {:.3g} | norm {:.3f}",
                     std::max(epoch, 1.0), 100 * (f.progress.epochs - std::max(epoch - 1, 0.0)), grouped(f.progress.updates), left, f.source_speed,
                     f.target_speed, f.loss, f.perplexity, f.rate, f.norm);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

Reporter::Reporter(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) log::warn("{}: cannot be written ({}); training goes on without it", path_, std::strerror(errno));
}

Reporter::~Reporter() {
  log::status("");
  if (file_ >= 0) ::close(file_);
}

void Reporter::append(const std::string& json) {
  if (file_ < 0) return;
  const std::string line = json + "\n";
  if (::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  log::warn("{}: cannot be written ({}); training goes on without it", path_, std::strerror(errno));
  ::close(file_);
  file_ = -1;
}

void Reporter::bar(const Figures& figures) {
  if (!log::on_terminal()) return;
  const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (now - last_bar_ < 0.25) return;
  last_bar_ = now;
  log::status(figures_text(figures));
}

void Reporter::display(const Figures& f) {
  log::info("{}", figures_text(f));
  Json json = begin("display", f.progress);
  json["loss"] = f.loss;
  json["perplexity"] = f.perplexity;
  json["learn_rate"] = f.rate;
  json["gradient_norm"] = f.norm;
  json["source_tokens_per_second"] = f.source_speed;
  json["target_tokens_per_second"] = f.target_speed;
  json["seconds"] = f.seconds;
  if (f.seconds_left) json["seconds_left"] = *f.seconds_left;
  append(json.dump());
}

void Reporter::validation(const Progress& progress, const ValidationResult& result, bool best, std::int64_t stalled, std::int64_t patience,
                          double seconds) {
  std::string text;
  Json json = begin("validation", progress);
  for (const Metric& metric : result) {
    text += fmt::format(" | {} {:.{}f}", metric.name, metric.value, metric.higher_is_better ? 2 : 4);
    json[metric.name] = metric.value;
  }
  const std::string verdict = best ? "best so far" : patience > 0 ? fmt::format("no progress {} of {}", stalled, patience) : fmt::format("no progress {}", stalled);
  log::info("validation at update {}{} | {} | {}", grouped(progress.updates), text, verdict, duration_text(seconds));
  json["best"] = best;
  json["stalled"] = stalled;
  json["took"] = seconds;
  append(json.dump());
}

void Reporter::saved(const Progress& progress, std::string_view reason, double seconds) {
  log::info("saved update {} ({}) in {:.1f} s", grouped(progress.updates), reason, seconds);
  Json json = begin("save", progress);
  json["reason"] = reason;
  json["took"] = seconds;
  append(json.dump());
}

void Reporter::event(std::string_view name, const Progress& progress, std::string_view sentence, bool warning) {
  log::line(warning ? log::Level::warn : log::Level::info, sentence);
  Json json = begin(name, progress);
  json["text"] = sentence;
  append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace nmt::train
