#include "library/lines.h"

#include "core/error.h"
#include "text/utf8.h"

namespace nmt::library {

std::vector<std::string> clean(std::span<const std::string> lines, const char* name,
                               std::int64_t first) {
  std::vector<std::string> result;
  result.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\n') != std::string::npos)
      fail(ExitStatus::data, "{}: line {} contains a line feed; pass each line separately", name,
           first + static_cast<std::int64_t>(i));
    if (is_valid_utf8(lines[i])) {
      result.push_back(lines[i]);
    } else {
      result.emplace_back();
      repair_utf8(lines[i], result.back());
    }
  }
  return result;
}

}  // namespace nmt::library
