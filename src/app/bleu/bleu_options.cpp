#include "app/bleu/bleu_options.h"

#include "core/error.h"

#include <algorithm>

namespace nmt::app {

using config::in_group;
using config::Option;

std::vector<Option> fields(BleuSpec& s) {
  constexpr double max_samples = 10'000'000;
  const auto unless_metric = [&s](const char* name) {
    return [&s, name] {
      const bool has = std::find(s.metrics.begin(), s.metrics.end(), name) != s.metrics.end();
      return has ? "" : fmt::format("metrics has no {}", name);
    };
  };
  const auto unless = [](const bool* flag, const char* name) {
    return [flag, name] { return *flag ? "" : fmt::format("{} is off", name); };
  };
  return config::joined(
      {in_group("files",
                {
                    Option("references", &s.references, "reference files").meta("FILE..."),
                    Option("input", &s.inputs, "hypothesis files, one per system")
                        .unset_means("standard input")
                        .alias({"i"})
                        .meta("FILE..."),
                    Option("num-refs", &s.reference_fields,
                           "tab-separated references per line of the reference file")
                        .alias({"nr"})
                        .range(1, 1000),
                }),
       in_group(
           "metrics",
           {
               Option("metrics", &s.metrics, "metrics to compute; rouge: rouge1, rouge2 and rougeL")
                   .alias({"m"})
                   .one_of({"bleu", "chrf", "rouge", "rouge1", "rouge2", "rougeL", "ter"})
                   .meta("NAME..."),
               Option("lowercase", &s.bleu.lowercase, "case-insensitive BLEU")
                   .alias({"lc"})
                   .idle_when(unless_metric("bleu")),
               Option("tokenize", &s.bleu.tokenizer, "tokenizer; multi-bleu: tokenized text")
                   .alias({"-tok"})
                   .idle_when(unless_metric("bleu")),
               Option("smooth-method", &s.bleu.smoothing, "smoothing of BLEU")
                   .alias({"s"})
                   .idle_when(unless_metric("bleu")),
               Option("smooth-value", &s.bleu.smoothing_value,
                      "smoothing value; auto: 0.1 for floor, 1 for add-k")
                   .alias({"sv"})
                   .range(0)
                   .chosen_by_default()
                   .idle_when(unless_metric("bleu")),
               Option("chrf-char-order", &s.chrf.character_order, "maximum character n-gram order")
                   .alias({"cc"})
                   .range(1, chrf_orders)
                   .idle_when(unless_metric("chrf")),
               Option("chrf-word-order", &s.chrf.word_order, "maximum word n-gram order; 2: chrF++")
                   .alias({"cw"})
                   .range(0, chrf_orders)
                   .idle_when(unless_metric("chrf")),
               Option("chrf-beta", &s.chrf.beta, "weight of recall against precision")
                   .range(0, 1000)
                   .idle_when(unless_metric("chrf")),
               Option("chrf-lowercase", &s.chrf.lowercase, "case-insensitive chrF")
                   .idle_when(unless_metric("chrf")),
               Option("chrf-whitespace", &s.chrf.whitespace, "white space as characters of chrF")
                   .idle_when(unless_metric("chrf")),
               Option("lineage", &s.lineage, "BLEU by four common definitions, with signatures"),
               Option("sentence-level", &s.sentence_level, "one score per line").alias({"sl"}),
               Option("force", &s.force, "no warning about tokenized hypotheses")
                   .idle_when(unless_metric("bleu")),
           }),
       in_group(
           "significance",
           {
               Option("confidence", &s.confidence, "95 % confidence interval by bootstrap")
                   .alias({"ci"}),
               Option("confidence-n", &s.confidence_samples, "bootstrap resamples")
                   .alias({"-cin"})
                   .range(2, max_samples)
                   .idle_when(unless(&s.confidence, "confidence")),
               Option("paired-bs", &s.paired_bootstrap,
                      "paired bootstrap; the first system is the baseline")
                   .alias({"-pbs"}),
               Option("paired-bs-n", &s.bootstrap_samples, "paired bootstrap resamples")
                   .alias({"-pbsn"})
                   .range(1, max_samples)
                   .idle_when(unless(&s.paired_bootstrap, "paired-bs")),
               Option("paired-ar", &s.paired_randomization,
                      "paired approximate randomization; the first system is the baseline")
                   .alias({"-par"}),
               Option("paired-ar-n", &s.randomization_trials, "randomization trials")
                   .alias({"-parn"})
                   .range(1, max_samples)
                   .idle_when(unless(&s.paired_randomization, "paired-ar")),
               Option("seed", &s.seed, "seed of the generator (PCG64 of numpy)").idle_when([&s] {
                 return s.confidence || s.paired() != PairedTest::none
                            ? ""
                            : "there is no significance test";
               }),
           }),
       in_group("output",
                {
                    Option("score-only", &s.score_only,
                           "print only the scores; several systems: one line for each")
                        .alias({"b"})
                        .idle_when([&s] {
                          return s.paired() == PairedTest::none ? "" : "paired tests write a table";
                        }),
                    Option("width", &s.width, "digits after the decimal point")
                        .alias({"w"})
                        .range(0, 100),
                    Option("format", &s.format,
                           "output format; sentence-level and score-only: always text")
                        .alias({"f"}),
                }),
       in_group("common",
                {Option("quiet", &s.quiet, "log errors only").alias({"q"}).never_dumped()})});
}

void check(const BleuSpec& s) {
  if (s.bleu.smoothing_value >= 0 && s.bleu.smoothing != BleuSmoothing::floor &&
      s.bleu.smoothing != BleuSmoothing::add_k)
    fail(ExitStatus::usage, "--smooth-value {}: only floor and add-k take one, not {}",
         s.bleu.smoothing_value, name_of(s.bleu.smoothing));
  if (s.chrf.character_order + s.chrf.word_order > chrf_orders)
    fail(ExitStatus::usage, "--chrf-word-order {}: expected a whole number from 0 to {}",
         s.chrf.word_order, chrf_orders - s.chrf.character_order);
  if (s.paired_bootstrap && s.paired_randomization)
    fail(ExitStatus::usage, "--paired-bs and --paired-ar exclude each other");
  const bool paired = s.paired() != PairedTest::none, tested = s.confidence || paired;
  const std::size_t systems = std::max<std::size_t>(s.inputs.size(), 1);
  if (s.references.empty())
    fail(ExitStatus::usage, "no reference file; usage: nmt-bleu REF [REF...] -i HYP [HYP...]");
  if (s.reference_fields > 1 && s.references.size() > 1)
    fail(ExitStatus::usage, "--num-refs {} takes one reference file, not {}", s.reference_fields,
         s.references.size());
  if (paired && systems < 2)
    fail(ExitStatus::usage,
         "a paired test requires two or more systems; give their outputs to --input");
  if (s.confidence && systems > 1)
    fail(ExitStatus::usage,
         "--confidence takes one system, not {}; --paired-bs gives intervals for several", systems);
  if ((s.sentence_level || s.lineage) && (systems > 1 || tested || s.metrics.size() > 1))
    fail(ExitStatus::usage, "--{} takes one system and one metric, and no significance test",
         s.lineage ? "lineage" : "sentence-level");
  if (s.sentence_level && s.metrics == std::vector<std::string>{"rouge"})
    fail(ExitStatus::usage,
         "--sentence-level takes one metric: rouge1, rouge2 or rougeL instead of rouge");
  const BleuOptions defaults;
  if (s.lineage && (s.sentence_level || s.metrics != std::vector<std::string>{"bleu"} ||
                    s.bleu.tokenizer != defaults.tokenizer ||
                    s.bleu.smoothing != defaults.smoothing || s.bleu.lowercase))
    fail(ExitStatus::usage,
         "--lineage has four fixed definitions of BLEU and excludes --metrics, --tokenize, "
         "--smooth-method, --lowercase, --sentence-level");
}

}  // namespace nmt::app
