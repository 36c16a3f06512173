#include "config/fields.h"

#include <algorithm>

namespace nmt::config {
namespace {

std::vector<Option> list(SearchSpec& s) {
  std::vector<Option> options = in_group(
      "search",
      {
          Option("beam-size", &s.beam_size, "hypotheses kept at each step; 1: greedy search")
              .alias({"b", "beam"})
              .range(1, 1024)
              .in_validation(),
          Option("normalize", &s.normalize,
                 "exponent A of score / length^A instead of length-penalty; 0: off")
              .alias({"n"})
              .range(0, 100)
              .value_alone("1")
              .meta("A")
              .excluding({"length-penalty"}, "0")
              .in_validation(),
          Option("length-penalty", &s.length_penalty,
                 "exponent A of score / ((5 + length)/6)^A (GNMT)")
              .range(0, 100)
              .meta("A")
              .excluding({"normalize"}, "0")
              .in_validation(),
          Option("coverage-penalty", &s.coverage_penalty,
                 "weight of the source coverage penalty (GNMT's beta)")
              .range(0, 100)
              .meta("B")
              .in_validation(),
          Option("max-length-factor", &s.max_length_factor,
                 "output length limit: tokens per source token")
              .range(0, 1000)
              .in_validation(),
          Option("max-length-offset", &s.max_length_offset,
                 "output length limit: additional tokens")
              .range(0, 100000)
              .in_validation(),
          Option("allow-unk", &s.allow_unk, "allow <unk> in outputs").in_validation(),
          Option("n-best", &s.n_best, "all hypotheses with scores, in Moses n-best format"),
          Option("alignment", &s.alignment, "source words or subwords each output word attends to")
              .value_alone("word"),
          Option("shortlist", &s.shortlist,
                 "target pieces to score: FIRST most frequent, BEST translations of source pieces")
              .unset_means("that of the model directory, if it has one")
              .meta("FILE [FIRST [BEST [PRUNE]]]|off"),
          Option("max-length", &s.max_length,
                 "source length limit in tokens; longer sentences are cropped")
              .range(1, 1000000)
              .in_validation("valid-max-length"),
      });
  for (Option& option :
       in_group("batch", {
                             Option("mini-batch", &s.mini_batch, "sentences per batch")
                                 .alias({"batch-size"})
                                 .range(1, 100000)
                                 .in_validation("valid-mini-batch"),
                             Option("maxi-batch", &s.maxi_batch,
                                    "batches per window, which is sorted by sentence length")
                                 .range(1, 1000000),
                             Option("maxi-batch-sort", &s.maxi_batch_sort, "sort key of windows"),
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
    if (option.validation_name.empty()) continue;
    if (option.validation_name != option.name) option.aliases.clear();
    option.name = option.validation_name;
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
    fail(status, "normalize {} and length-penalty {} exclude each other; give one of them",
         s.normalize, s.length_penalty);
}

}  // namespace nmt::config
