#include "app/progress.h"

#include "core/log.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt::app {

ProgressLine::ProgressLine(const std::string& path)
    : visible_(log::on_terminal() && log::level() <= log::Level::info) {
  struct stat status {};
  const bool standard = path.empty() || path == "-";
  if ((standard ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) == 0 &&
      S_ISREG(status.st_mode))
    size_ = status.st_size;
  visible_ = visible_ && size_ > 0;
}

ProgressLine::~ProgressLine() {
  if (visible_) log::status("");
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

double ProgressLine::processor_seconds() const {
  return static_cast<double>(std::clock() - processor_start_) / CLOCKS_PER_SEC;
}

void ProgressLine::show(std::int64_t lines_read, std::int64_t bytes_read, std::int64_t lines_done) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!visible_ || lines_done == 0 || bytes_read == 0 || now - shown_ < 200ms) return;
  shown_ = now;
  const double pace = static_cast<double>(lines_done) / seconds();
  const double read = std::min(1.0, static_cast<double>(bytes_read) / static_cast<double>(size_));
  const double all =
      std::max(static_cast<double>(lines_read) / read, static_cast<double>(lines_done));
  const auto left = static_cast<std::int64_t>((all - static_cast<double>(lines_done)) / pace + 0.5);
  log::status(fmt::format("{} sentences, {:.0f} %, {:.1f} sentences/s, {}:{:02}:{:02} left",
                          lines_done, 100.0 * static_cast<double>(lines_done) / all, pace,
                          left / 3600, left / 60 % 60, left % 60));
}

}  // namespace nmt::app
