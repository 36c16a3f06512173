#pragma once

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/significance.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::app {

enum class PairedTest { none, bootstrap, randomization };

/// What to score and how: the settings of sacreBLEU, with the same meaning.
struct BleuSpec {
  std::vector<std::string> references;       ///< files, one a stream
  std::vector<std::string> inputs;           ///< hypothesis files; empty: standard input
  std::vector<std::string> metrics{"bleu"};  ///< bleu, chrf
  int reference_fields = 1;                  ///< references in one file, separated by tabs
  BleuOptions bleu;
  ChrfOptions chrf;
  bool sentence_level = false;
  bool lineage = false;
  bool confidence = false;
  int confidence_samples = 1000;
  PairedTest paired = PairedTest::none;
  int paired_samples = 1000;
  std::uint64_t seed = significance_seed;
  int width = 1;  ///< digits behind the point
  bool score_only = false;
  bool json = true;
  bool quiet = false;
  bool force = false;  ///< no warning about text that looks tokenized
};

/// Reads the arguments (without the program's name). False when --help or --version was asked for
/// and has been printed. Errors (usage): unknown options with the nearest known name, wrong values
/// with what is allowed, options that exclude each other.
bool parse_bleu_command(const std::vector<std::string>& arguments, BleuSpec& spec);

}  // namespace nmt::app
