#include "text/noise.h"

namespace nmt::config {
namespace {

std::vector<Option> list(NoiseSpec& s) {
  const auto kind = [](const char* name, double* rate, const char* help) {
    return Option(name, rate, help).range(0, 1).meta("P").chosen_by_default().kept_by_resume();
  };
  return {
      Option("noise", {}, "default of noise-upper, -title, -typos and -punctuation; 0: none")
          .range(0, 0.5)
          .meta("P")
          .spreads_to({"noise-upper", "noise-title", "noise-typos", "noise-punctuation"}),
      kind("noise-upper", &s.upper, "share of training pairs in upper case"),
      kind("noise-title", &s.title, "share of training pairs in title case"),
      kind("noise-typos", &s.typos, "share of training pairs with typos in the source"),
      kind("noise-punctuation", &s.punctuation,
           "share of training pairs without their final punctuation"),
      kind("bpe-dropout", &s.bpe_dropout,
           "probability that a merge of byte-pair encoding is skipped in training text"),
  };
}

}  // namespace

std::vector<Option> fields(NoiseSpec& spec) {
  return with_defaults(spec, [](auto& s) { return in_group("noise", list(s)); });
}

void check(const NoiseSpec& s) {
  if (s.upper + s.title > 1)
    fail(ExitStatus::usage, "noise-upper {} and noise-title {}: their sum is above 1", s.upper,
         s.title);
}

}  // namespace nmt::config
