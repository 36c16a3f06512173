#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// Progress of a training: everything that the learning rate depends on, so that a resumed run
/// computes the same rates.
struct Progress {
  /// Completed updates. When a learning rate is queried: the number of the next update, from 1.
  std::int64_t updates = 0;
  /// Passes over the corpus, including the fraction of the current one; an integer at the end of a
  /// pass.
  double epochs = 0;
  std::int64_t labels = 0;  ///< target tokens seen, </s> included, padding excluded
};

/// A length of training in Marian's notation: a number, a multiplier K, M or G, and a unit: u
/// updates, e epochs, t target tokens. "100Ku", "10e", "1.5Gt"; no unit means updates.
struct Period {
  enum class Unit : char { updates = 'u', epochs = 'e', labels = 't' };
  double count = 0;
  Unit unit = Unit::updates;

  explicit operator bool() const { return count > 0; }
  /// The progress in this period's unit.
  double measure(const Progress& progress) const;
  std::string text() const;
};

/// Parses one period; "" and "0" mean none. Error (usage): another form; `option` is named in the
/// message.
Period parse_period(std::string_view text, std::string_view option);
/// Converts relative lengths in a comma-separated list to absolute ones: "+10e" is ten epochs after
/// `done`. Error (usage): as parse_period, for lengths with a plus.
std::string absolute_periods(std::string_view text, const Progress& done, std::string_view option);
/// Parses a comma-separated list: "10e,100Ku". Empty for "".
std::vector<Period> parse_periods(std::string_view text, std::string_view option);

/// Whether a multiple of the period lies in (before, after], up to rounding, so that it is time to
/// display, validate or save.
bool is_due(const Period& period, const Progress& before, const Progress& after);
/// Whether the progress has reached the period, up to rounding.
bool is_reached(const Period& period, const Progress& progress);

}  // namespace nmt
