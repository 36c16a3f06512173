#include "config/fields.h"

#include <algorithm>

namespace nmt::config {
namespace {

std::vector<Option> list(SearchSpec& s) {
  std::vector<Option> options = in_group(
      "search",
      {
          Option("beam-size", &s.beam_size, "hypotheses kept at each step; 1: greedy")
              .alias({"b", "beam"})
              .range(1, 1024),
          Option("normalize", &s.normalize,
                 "divide scores by length^A, in place of --length-penalty")
              .alias({"n"})
              .range(0, 100)
              .value_alone("1")
              .meta("A"),
          Option("length-penalty", &s.length_penalty, "divide scores by ((5 + length)/6)^A (GNMT)")
              .range(0, 100)
              .meta("A"),
          Option("coverage-penalty", &s.coverage_penalty,
                 "weight of the coverage of the source by attention (GNMT's beta)")
              .range(0, 100)
              .meta("B"),
          Option("max-length-factor", &s.max_length_factor,
                 "longest output in tokens: factor * source tokens + offset")
              .range(0, 1000),
          Option("max-length-offset", &s.max_length_offset, "see --max-length-factor")
              .range(0, 100000),
          Option("allow-unk", &s.allow_unk, "let the unknown symbol into outputs"),
          Option("n-best", &s.n_best,
                 "print all hypotheses of the beam with scores, in Moses' format"),
          Option("alignment", &s.alignment,
                 "print which words, or subwords, each output word attended to")
              .value_alone("word"),
          Option("shortlist", &s.shortlist,
                 "score only the FIRST (100) most frequent target pieces and the BEST (100) "
                 "translations of each source "
                 "piece, by a list that scripts/data/make_shortlist.py makes; PRUNE leaves out "
                 "those less likely")
              .meta("FILE [FIRST [BEST [PRUNE]]]"),
          Option("max-length", &s.max_length,
                 "longest source sentence in tokens; longer ones are cropped, with a warning")
              .range(1, 1000000),
      });
  for (Option& option : in_group(
           "batch", {
                        Option("mini-batch", &s.mini_batch, "sentences of a batch")
                            .alias({"batch-size"})
                            .range(1, 100000),
                        Option("maxi-batch", &s.maxi_batch,
                               "batches of a window within which sentences are sorted by length")
                            .range(1, 1000000),
                        Option("maxi-batch-sort", &s.maxi_batch_sort,
                               "sort windows by source length, or not"),
                    }))
    options.push_back(std::move(option));
  return options;
}

}  // namespace

std::vector<Option> fields(SearchSpec& spec, const SearchSpec& defaults) {
  return with_defaults(
      spec, [](auto& s) { return list(s); }, defaults);
}

std::vector<Option> validation_fields(SearchSpec& s) {
  std::vector<Option> options;
  for (Option& option : fields(s)) {
    if (option.name == "max-length" || option.name == "mini-batch") {
      option.name = "valid-" + option.name;
      option.aliases.clear();
      option.help += ", in validation";
    } else if (option.group != "search" || option.name == "n-best" || option.name == "alignment" ||
               option.name == "shortlist") {
      continue;
    }
    option.group = "validation";
    options.push_back(std::move(option));
  }
  return options;
}

void check(const SearchSpec& s, ExitStatus status) {
  SearchSpec copy = s;
  for (const Option& option : fields(copy))
    if (const std::vector<std::string> words = values(option); !words.empty())
      assign(option, words, option.name, false, status);
  if (s.normalize != 0 && s.length_penalty != 0)
    fail(status,
         "normalize {} and length-penalty {}: two rules for the same thing; give one of them",
         s.normalize, s.length_penalty);
}

}  // namespace nmt::config
