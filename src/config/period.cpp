#include "config/period.h"

#include "core/error.h"

#include <charconv>
#include <cmath>

namespace nmt {
namespace {

// How often the progress contains the period. Rounding may leave the quotient of fractions of an
// epoch just below a whole number (0.3 / 0.1 < 3), so it is a little larger here.
double quotient(const Period& period, const Progress& progress) {
  constexpr double tolerance = 1e-12;
  return period.measure(progress) / period.count * (1 + tolerance);
}

}  // namespace

double Period::measure(const Progress& progress) const {
  switch (unit) {
    case Unit::epochs: return progress.epochs;
    case Unit::labels: return static_cast<double>(progress.labels);
    case Unit::updates: break;
  }
  return static_cast<double>(progress.updates);
}

std::string Period::text() const {
  char text[400];  // a double has up to 309 digits before the point, or 324 behind it
  const auto end = std::to_chars(text, text + sizeof text, count, std::chars_format::fixed).ptr;
  return std::string(text, end) + static_cast<char>(unit);
}

Period parse_period(std::string_view text, std::string_view option) {
  Period period;
  if (text.empty()) return period;
  const char* end = text.data() + text.size();
  const auto [rest, error] =
      std::from_chars(text.data(), end, period.count, std::chars_format::fixed);
  const char* at = rest;
  if (at != end) switch (*at) {
      case 'K': period.count *= 1e3, ++at; break;
      case 'M': period.count *= 1e6, ++at; break;
      case 'G': period.count *= 1e9, ++at; break;
      default: break;
    }
  if (at != end && (*at == 'u' || *at == 'e' || *at == 't'))
    period.unit = static_cast<Period::Unit>(*at++);
  if (error != std::errc() || at != end || !(period.count >= 0) || !std::isfinite(period.count))
    fail(ExitStatus::usage,
         "{}: '{}' is not a training length; expected a number with u (updates), e (epochs) or t "
         "(target tokens), such as 500u, 100Ku, 10e",
         option, text);
  return period;
}

std::string absolute_periods(std::string_view text, const Progress& done, std::string_view option) {
  std::string absolute;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    if (!absolute.empty()) absolute += ',';
    if (part.starts_with('+')) {
      Period period = parse_period(part.size() > 1 ? part.substr(1) : part, option);
      period.count += period.measure(done);
      absolute += period.text();
    } else {
      absolute += part;
    }
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return absolute;
}

std::vector<Period> parse_periods(std::string_view text, std::string_view option) {
  std::vector<Period> periods;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const Period period = parse_period(text.substr(0, comma), option);
    if (period) periods.push_back(period);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return periods;
}

bool is_due(const Period& period, const Progress& before, const Progress& after) {
  return period && std::floor(quotient(period, after)) > std::floor(quotient(period, before));
}

bool is_reached(const Period& period, const Progress& progress) {
  return period && quotient(period, progress) >= 1;
}

}  // namespace nmt
