#pragma once

#include "app/translate/translate_spec.h"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// A way to translate, for the table of nmt-distill.
struct Candidate {
  std::string name;
  TranslateSpec spec;  ///< models, search and precision; threads and batches are set
};

/// One row of the table. Times are CPU time of one thread, so that other programs on the
/// machine disturb little.
struct Measurement {
  std::string name;
  double megabytes = 0;             ///< stored weights
  std::int64_t parameters = 0;      ///< weights
  double bleu = 0;                  ///< as nmt-bleu; measure() does not set it
  double words = 0, sentences = 0;  ///< source words and sentences per second, batches of 64
  double words_alone = 0, sentences_alone = 0;  ///< the same, one sentence at a time
  std::vector<std::string> outputs;
  double first = 0;  ///< ms to open the model and translate the first sentence
};

/// Translates the text with one thread of the CPU. Of batches of one sentence, the first `alone`
/// sentences are measured.
Measurement measure(const Candidate& candidate, const std::vector<std::string>& sources,
                    std::int64_t alone);

/// A Markdown table; `speed` relative to the first row, in batches of 64.
std::string table_text(const std::vector<Measurement>& rows, const std::string& title);
nlohmann::ordered_json table_json(const std::vector<Measurement>& rows);

}  // namespace nmt::app
