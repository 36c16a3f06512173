#pragma once

#include "app/bleu/bleu_options.h"

#include <string>

namespace nmt::app {

/// Scores the hypothesis files against the references; returns the report as text, in sacreBLEU's
/// format. Errors: (usage) a file given twice; (data) an empty file, files with different numbers
/// of lines, a line with too few references; as LineReader::open.
std::string bleu(const BleuSpec& spec);

}  // namespace nmt::app
