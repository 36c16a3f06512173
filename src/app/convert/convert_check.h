#pragma once

#include "app/convert/convert.h"
#include "search/beam/shortlist.h"
#include "tensor/tensor.h"

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// Translates the sentences of the check with float32 weights, and with weights `to` and the
/// shortlist (null: none). Returns the result for the new model's state.json: {"sentences",
/// "bleu-float32", "bleu"}. Errors (usage, data): no sentences for the check; (failed): BLEU falls
/// by more than the tolerance, also over ten times as many sentences if there are more.
nlohmann::ordered_json check_conversion(const ConvertSpec& spec, Dtype to,
                                        const Shortlist* shortlist);

/// The same with a language model and its perplexity of the first lines of a text: {"lines",
/// "perplexity-float32", "perplexity"}. Errors (usage): no text given; (data): no line with text;
/// (failed): the perplexity rises by more than the tolerance, in percent.
nlohmann::ordered_json check_language_model(const ConvertSpec& spec, Dtype to);

}  // namespace nmt::app
