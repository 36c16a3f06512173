#pragma once

#include "config/specs.h"

namespace nmt {

/// What a model's settings can say of their own sense, whatever the text. Error (usage): the first
/// that is out of range or that has no meaning beside the others, with its value and what is
/// allowed.
void check_model(const ModelSpec& spec);

/// Whether attention is asked by a conditional first decoder layer (true) or by a plain one for all
/// steps at once; the architecture says what `attention-query: auto` is.
bool asks_recurrently(const ModelSpec& spec);

}  // namespace nmt
