#include "app/translate/translate_spec.h"

#include "app/common_options.h"
#include "config/fields.h"

namespace nmt::app {

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
       config::fields(spec.search), config::decoding_fields(spec.compute)});
}

void check(const TranslateSpec& spec) {
  config::check(spec.search);
}

}  // namespace nmt::app
