#include "data/loader_state.h"

#include "core/error.h"

#include <locale>
#include <sstream>

#include <fmt/format.h>

namespace nmt {

DropCounts& DropCounts::operator+=(const DropCounts& other) {
  empty += other.empty;
  too_long += other.too_long;
  cropped += other.cropped;
  if (other.longest > longest) {
    longest = other.longest;
    longest_line = other.longest_line;
  }
  return *this;
}

std::string DropCounts::text(int max_length, bool words) const {
  const char* const unit = words ? "words" : "tokens";
  std::string message;
  const auto add = [&](const std::string& part) {
    message += message.empty() ? part : ", " + part;
  };
  if (empty > 0) add(fmt::format("{} with an empty side dropped", empty));
  if (too_long > 0)
    add(fmt::format("{} longer than {} {} (max-length) dropped", too_long, max_length, unit));
  if (cropped > 0) add(fmt::format("{} cropped to {} {} (max-length)", cropped, max_length, unit));
  if (longest > 0) message += fmt::format(" (the longest has {}, line {})", longest, longest_line);
  return message;
}

std::string LoaderState::text() const {
  return fmt::format("{} {} {} {} {} {} {} {} {}", epoch, window, batch, epochs, drops.empty,
                     drops.too_long, drops.cropped, drops.longest, drops.longest_line);
}

LoaderState LoaderState::parse(const std::string& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  LoaderState state;
  in >> state.epoch >> state.window >> state.batch >> state.epochs >> state.drops.empty >>
      state.drops.too_long >> state.drops.cropped >> state.drops.longest >>
      state.drops.longest_line;
  if (!in || !(in >> std::ws).eof() || state.epoch < 0 || state.window < 0 || state.batch < 0) {
    fail(ExitStatus::data, "position in the corpus \"{}\": expected nine numbers", text);
  }
  return state;
}

}  // namespace nmt
