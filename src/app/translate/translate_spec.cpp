#include "app/translate/translate_spec.h"

#include "app/common_options.h"
#include "config/fields.h"
#include "core/error.h"
#include "search/beam/shortlist.h"

namespace nmt::app {

std::vector<config::Option> fields(TextSpec& spec) {
  using config::Option;
  return config::in_group(
      "text",
      {Option("preserve", &spec.preserve, "spans that translations keep verbatim")
           .value_alone("all")
           .meta("KIND..."),
       Option("glossary", &spec.glossary, "terms and their translations, separated by a tab")
           .meta("FILE"),
       Option("repetition-guard", &spec.repetition_guard,
              "replace translations that repeat words or pieces in a row"),
       Option("recase", &spec.recase,
              "translation of all-caps and title-case lines in sentence case; case restored")});
}

std::vector<config::Option> fields(TranslateSpec& spec) {
  using config::Option;
  return joined(
      {fields(spec.models),
       config::in_group(
           "files",
           {Option("input", &spec.input, "input file")
                .unset_means("standard input")
                .alias({"i"})
                .meta("FILE"),
            output_option(&spec.output, "translations"),
            Option("text", &spec.text, "lines to translate instead of an input file")
                .meta("TEXT")
                .never_dumped(),
            Option("no-spm-encode", &spec.pieces_in,
                   "input is already split into pieces of the vocabulary"),
            Option("no-spm-decode", &spec.pieces_out, "output as pieces of the vocabulary")}),
       config::fields(spec.search), fusion_fields(spec.models), fields(spec.text_rules),
       config::decoding_fields(spec.compute)});
}

JobInputs inputs_of(const TranslateSpec& spec) {
  JobInputs inputs{{spec.text_rules.glossary}, spec.models.models};
  if (const auto shortlist = ShortlistOptions::parse(spec.search.shortlist))
    inputs.files.push_back(shortlist->path);
  if (!spec.models.language_model.empty()) inputs.models.push_back(spec.models.language_model);
  return inputs;
}

void check(const TranslateSpec& spec) {
  config::check(spec.search);
  const TextSpec& rules = spec.text_rules;
  const char* const rule = !rules.preserve.empty()   ? "preserve"
                           : !rules.glossary.empty() ? "glossary"
                           : rules.repetition_guard  ? "repetition-guard"
                           : rules.recase            ? "recase"
                                                     : nullptr;
  if (!rule) return;
  const auto refuse = [&](const char* other) {
    fail(ExitStatus::usage, "{} and {} exclude each other: the former works on plain text", rule,
         other);
  };
  if (spec.search.alignment != AlignmentKind::none) refuse("alignment");
  if (spec.attention) refuse("attention");
  if (spec.pieces_in) refuse("no-spm-encode");
  if (spec.pieces_out) refuse("no-spm-decode");
}

}  // namespace nmt::app
