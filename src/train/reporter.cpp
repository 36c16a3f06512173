#include "train/reporter.h"

#include "core/log.h"
#include "core/nlohmann.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt::train {
namespace {

using Json = nlohmann::ordered_json;

Json begin(std::string_view event, const Progress& progress) {
  return Json{{"event", event},
              {"updates", progress.updates},
              {"epochs", progress.epochs},
              {"labels", progress.labels}};
}

std::string figures_text(const Figures& f) {
  const double epoch = std::ceil(f.progress.epochs);  // a pass's last batch belongs to it
  const std::string left = f.seconds_left ? duration_text(*f.seconds_left) + " left | " : "";
  const std::string speed =
      f.source_speed > 0
          ? fmt::format("{:.0f} src + {:.0f} trg tokens/s", f.source_speed, f.target_speed)
          : fmt::format("{:.0f} tokens/s", f.target_speed);  // a language model has no source
  const std::string alignment = f.alignment ? fmt::format(" | alignment {:.4f}", *f.alignment) : "";
  return fmt::format(
      "epoch {:.0f} ({:.0f} %) | update {} | {}{} | loss {:.4f} | ppl {:.2f}{} | lr {:.3g} | "
      "norm {:.3f}",
      std::max(epoch, 1.0), 100 * (f.progress.epochs - std::max(epoch - 1, 0.0)),
      grouped(f.progress.updates), left, speed, f.loss, f.perplexity, alignment, f.rate, f.norm);
}

// Lines that a resumed training writes again.
bool is_repeated(const std::string& line) {
  constexpr std::array repeated = {"display", "validation", "skipped", "recovery", "average"};
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("event") || !json["event"].is_string()) return true;
  const auto& event = json["event"].get_ref<const std::string&>();
  return std::find(repeated.begin(), repeated.end(), event) != repeated.end();
}

std::int64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? static_cast<std::int64_t>(status.st_size) : 0;
}

// Whether all was written; if not, errno says why.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// The file's bytes from `begin` on.
std::string tail(int file, std::int64_t begin) {
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(size_of(file) - begin, 0)),
                   '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n =
        ::pread(file, text.data() + got, text.size() - got, begin + static_cast<std::int64_t>(got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

}  // namespace

Reporter::Reporter(std::string path, ProgressListener listener)
    : path_(std::move(path)), listener_(std::move(listener)) {
  if (path_.empty()) return;
  file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) {
    close_with_warning();
    return;
  }
  // What is left of a last line goes: back to the end of the line before it.
  constexpr std::int64_t block = 1 << 16;
  for (std::int64_t end = size_of(file_); end > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(end - block, 0);
    const std::string text = tail(file_, begin).substr(0, static_cast<std::size_t>(end - begin));
    const std::size_t last = text.rfind('\n');
    end = last == std::string::npos ? begin : begin + static_cast<std::int64_t>(last) + 1;
    if (last == std::string::npos && begin > 0) continue;
    if (end < size_of(file_) && ::ftruncate(file_, end) != 0) close_with_warning();
    break;
  }
}

Reporter::~Reporter() {
  log::status("");
  if (file_ >= 0) ::close(file_);
}

void Reporter::append(const std::string& json) {
  if (file_ < 0) return;
  const std::int64_t whole = size_of(file_);
  if (write_all(file_, json + "\n")) return;
  end_ = whole;
  close_with_warning();
}

void Reporter::close_with_warning() {
  log::warn("{}: cannot be written ({}); training goes on without it", path_, std::strerror(errno));
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

std::int64_t Reporter::position() {
  if (file_ < 0) return end_;
  ::fdatasync(
      file_);  // a checkpoint that names the position must not be older than what stands before it
  return size_of(file_);
}

void Reporter::rewind(std::int64_t position) {
  if (file_ < 0 || position < 0 || position >= size_of(file_)) return;
  const std::string text = tail(file_, position);
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!is_repeated(line)) kept += line + "\n";
    begin = end + 1;
  }
  if (kept.size() == text.size()) return;
  if (::ftruncate(file_, position) != 0 || !write_all(file_, kept)) close_with_warning();
}

void Reporter::bar(const Figures& figures) {
  if (!log::on_terminal()) return;
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (now - last_bar_ < 0.25) return;
  last_bar_ = now;
  log::status(figures_text(figures));
}

void Reporter::display(const Figures& f) {
  log::info("{}", figures_text(f));
  Json json = begin("display", f.progress);
  json["loss"] = f.loss;
  json["perplexity"] = f.perplexity;
  if (f.alignment) json["alignment"] = *f.alignment;
  json["learn_rate"] = f.rate;
  json["gradient_norm"] = f.norm;
  json["source_tokens_per_second"] = f.source_speed;
  json["target_tokens_per_second"] = f.target_speed;
  json["seconds"] = f.seconds;
  if (f.seconds_left) json["seconds_left"] = *f.seconds_left;
  append(json.dump());
  if (listener_.on_display) listener_.on_display(f);
}

void Reporter::validation(const Progress& progress, const ValidationResult& result, bool best,
                          std::int64_t stalled, std::int64_t patience, double seconds) {
  std::string text;
  Json json = begin("validation", progress);
  for (const MetricValue& metric : result) {
    text +=
        fmt::format(" | {} {:.{}f}", metric.name, metric.value, metric.higher_is_better ? 2 : 4);
    json[metric.name] = metric.value;
  }
  const std::string verdict = best           ? "best so far"
                              : stalled == 0 ? "not the best"
                              : patience > 0
                                  ? fmt::format("no progress {} of {}", stalled, patience)
                                  : fmt::format("no progress {}", stalled);
  log::info("validation at update {}{} | {} | {}", grouped(progress.updates), text, verdict,
            duration_text(seconds));
  json["best"] = best;
  json["stalled"] = stalled;
  json["took"] = seconds;
  append(json.dump());
  if (listener_.on_validation) listener_.on_validation(progress, result, best);
}

void Reporter::saved(const Progress& progress, std::string_view reason, double seconds) {
  log::info("saved update {} ({}) in {:.1f} s", grouped(progress.updates), reason, seconds);
  Json json = begin("save", progress);
  json["reason"] = reason;
  json["took"] = seconds;
  append(json.dump());
}

void Reporter::event(std::string_view name, const Progress& progress, std::string_view sentence,
                     bool warning) {
  log::line(warning ? log::Level::warn : log::Level::info, sentence);
  Json json = begin(name, progress);
  json["text"] = sentence;
  append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Reporter::record(std::string_view event, const Progress& progress, const Json& members) {
  Json json = begin(event, progress);
  json.update(members);
  append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace nmt::train
