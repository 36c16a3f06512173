#pragma once

#include "config/option.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/significance.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::app {

enum class PairedTest { none, bootstrap, randomization };
enum class ReportFormat { json, text };
}  // namespace nmt::app

template <>
struct nmt::EnumNames<nmt::app::ReportFormat> {
  static constexpr std::array<std::string_view, 2> names{"json", "text"};
};

namespace nmt::app {

/// Specification of nmt-bleu: the settings of sacreBLEU, with the same meaning.
struct BleuSpec {
  std::vector<std::string> references;       ///< files, one per stream
  std::vector<std::string> inputs;           ///< hypothesis files; empty: standard input
  std::vector<std::string> metrics{"bleu"};  ///< bleu, chrf, ter, rouge, ...
  int reference_fields = 1;                  ///< references in one file, separated by tabs
  BleuOptions bleu;
  ChrfOptions chrf;
  bool sentence_level = false;
  bool lineage = false;
  bool confidence = false;
  int confidence_samples = 1000;
  bool paired_bootstrap = false, paired_randomization = false;  ///< one of them
  int bootstrap_samples = 1000;
  int randomization_trials = 10000;
  std::uint64_t seed = significance_seed;
  int width = 1;  ///< digits after the decimal point
  bool score_only = false;
  ReportFormat format = ReportFormat::json;
  bool quiet = false;
  bool force = false;  ///< no warning about text that looks tokenized

  PairedTest paired() const {
    return paired_bootstrap       ? PairedTest::bootstrap
           : paired_randomization ? PairedTest::randomization
                                  : PairedTest::none;
  }
  int paired_samples() const { return paired_bootstrap ? bootstrap_samples : randomization_trials; }
};

/// The options of nmt-bleu, with sacreBLEU's names and letters.
std::vector<config::Option> fields(BleuSpec& spec);
/// Error (usage): settings that contradict each other; no reference.
void check(const BleuSpec& spec);

}  // namespace nmt::app
