#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// How far a training is. Everything the schedule depends on, so that a resumed run computes the
/// same rates.
struct Progress {
  /// Updates made; when a rate is asked for: the number of the update about to be made, from 1.
  std::int64_t updates = 0;
  /// Passes over the corpus, with the fraction of the present one; whole at a pass's end.
  double epochs = 0;
  std::int64_t labels = 0;  ///< target tokens seen, </s> included, padding excluded
};

/// A length of training in Marian's notation: a number, a multiplier K, M or G, and a unit: u
/// updates, e epochs, t target labels. "100Ku", "10e", "1.5Gt"; no unit means updates.
struct Period {
  enum class Unit : char { updates = 'u', epochs = 'e', labels = 't' };
  double count = 0;
  Unit unit = Unit::updates;

  explicit operator bool() const { return count > 0; }
  /// The progress in this period's unit.
  double measure(const Progress& progress) const;
  std::string text() const;
};

/// Reads one period; "" and "0" are none. `option` is for the message. Error (usage): not of that
/// form.
Period parse_period(std::string_view text, std::string_view option);
/// A comma list in which "+10e" means ten epochs from `done` on, with such lengths counted from the
/// beginning. Error (usage): as parse_period, of those with a plus.
std::string absolute_periods(std::string_view text, const Progress& done, std::string_view option);
/// Reads a comma list: "10e,100Ku". Empty for "".
std::vector<Period> parse_periods(std::string_view text, std::string_view option);

/// Whether a whole multiple of the period lies in (before, after]: time to display, validate or
/// save.
bool is_due(const Period& period, const Progress& before, const Progress& after);
/// Whether that much training is done.
bool is_reached(const Period& period, const Progress& progress);

}  // namespace nmt
