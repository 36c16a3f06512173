#pragma once

#include "config/settings.h"
#include "nmt/scorer.h"
#include "nmt/trainer.h"
#include "nmt/translator.h"

#include <string>
#include <vector>

namespace nmt::library {

/// A member of an options struct under the name of its command-line option.
struct NamedValue {
  std::string name;
  std::vector<std::string> words;  ///< the value as on a command line
  bool list = false;
  bool operator==(const NamedValue&) const = default;
};

/// All members except `settings`, in order.
std::vector<NamedValue> members(const TranslatorOptions& options);
std::vector<NamedValue> members(const ScorerOptions& options);
std::vector<NamedValue> members(const TrainOptions& options);

/// Reads members that differ from their defaults, and then `extra`, as a configuration file. Errors
/// (usage): those of config::Settings; a name that is both a changed member and in `extra`; options
/// without effect; the log level, which is that of the process.
void read(const std::vector<NamedValue>& values, const std::vector<NamedValue>& defaults,
          const Settings& extra, config::Settings& settings);

}  // namespace nmt::library
