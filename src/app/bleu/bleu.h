#pragma once

#include "app/bleu/bleu_options.h"

#include <string>

namespace nmt::app {

/// Scores the hypothesis files against the references and returns what the spec asks for as text,
/// in sacreBLEU's form. Errors (usage): a file given twice; (data): an empty file, files of unequal
/// length, a line with too few references; as LineReader::open.
std::string bleu(const BleuSpec& spec);

}  // namespace nmt::app
