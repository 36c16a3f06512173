#include "app/bleu/bleu_options.h"

#include "app/program.h"
#include "config/option.h"
#include "core/error.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <sstream>

#include <boost/program_options.hpp>
#include <fmt/ranges.h>

namespace nmt::app {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

// sacreBLEU's short names of two letters and more, behind one dash.
const std::map<std::string, std::string> letters = {
    {"-lc", "--lowercase"},       {"-tok", "--tokenize"},       {"-sv", "--smooth-value"},
    {"-cc", "--chrf-char-order"}, {"-cw", "--chrf-word-order"}, {"-sl", "--sentence-level"},
    {"-ci", "--confidence"},      {"-cin", "--confidence-n"},   {"-pbs", "--paired-bs"},
    {"-pbsn", "--paired-bs-n"},   {"-par", "--paired-ar"},      {"-parn", "--paired-ar-n"},
    {"-nr", "--num-refs"},
};

// Values that are checked after parsing.
struct Raw {
  std::string tokenize, smooth_method, format;
  double smooth_value = 0;
  int paired_bootstrap_samples = 0, randomization_trials = 0;
};

po::options_description options(BleuSpec& spec, Raw& raw) {
  po::options_description files("Files", 110, 60), metrics("Metrics", 110, 60),
      tests("Significance", 110, 60), output("Output", 110, 60);
  files.add_options()("input,i",
                      po::value<Words>(&spec.inputs)->multitoken()->value_name("FILE..."),
                      "hypotheses, one file a system; standard input when none is given");
  files.add_options()("num-refs",
                      po::value(&spec.reference_fields)->default_value(1)->value_name("N"),
                      "the reference file has N references a line, separated by tabs; -nr");
  metrics.add_options()("metrics,m",
                        po::value<Words>(&spec.metrics)->multitoken()->value_name("NAME..."),
                        "bleu, chrf or both (default: bleu)");
  metrics.add_options()("lowercase", po::bool_switch(&spec.bleu.lowercase),
                        "BLEU without regard to case; -lc");
  metrics.add_options()("tokenize",
                        po::value(&raw.tokenize)->default_value("13a")->value_name("NAME"),
                        "13a, intl, none, or multi-bleu (text tokenized before); -tok");
  metrics.add_options()("smooth-method,s",
                        po::value(&raw.smooth_method)->default_value("exp")->value_name("NAME"),
                        "exp, floor, add-k or none");
  metrics.add_options()("smooth-value", po::value(&raw.smooth_value)->value_name("X"),
                        "of floor (default 0.1) and add-k (default 1); -sv");
  metrics.add_options()("chrf-char-order",
                        po::value(&spec.chrf.character_order)->default_value(6)->value_name("N"),
                        "longest character n-grams; -cc");
  metrics.add_options()("chrf-word-order",
                        po::value(&spec.chrf.word_order)->default_value(0)->value_name("N"),
                        "longest word n-grams; 2 is chrF++; -cw");
  metrics.add_options()("chrf-beta", po::value(&spec.chrf.beta)->default_value(2)->value_name("N"),
                        "weight of recall over precision");
  metrics.add_options()("chrf-lowercase", po::bool_switch(&spec.chrf.lowercase),
                        "chrF without regard to case");
  metrics.add_options()("chrf-whitespace", po::bool_switch(&spec.chrf.whitespace),
                        "count white space among the characters");
  metrics.add_options()("lineage", po::bool_switch(&spec.lineage),
                        "BLEU by four definitions, each with its signature: 13a cased, 13a "
                        "lowercased, intl lowercased, multi-bleu");
  metrics.add_options()("sentence-level", po::bool_switch(&spec.sentence_level),
                        "one score a line; -sl");
  metrics.add_options()("force", po::bool_switch(&spec.force),
                        "no warning about hypotheses that look tokenized");
  tests.add_options()("confidence", po::bool_switch(&spec.confidence),
                      "95 % interval by bootstrap; -ci");
  tests.add_options()("confidence-n",
                      po::value(&spec.confidence_samples)->default_value(1000)->value_name("N"),
                      "its resamples; -cin");
  tests.add_options()("paired-bs", "paired bootstrap: the first system is the baseline; -pbs");
  tests.add_options()(
      "paired-bs-n", po::value(&raw.paired_bootstrap_samples)->default_value(1000)->value_name("N"),
      "its resamples; -pbsn");
  tests.add_options()("paired-ar", "paired approximate randomization; -par");
  tests.add_options()("paired-ar-n",
                      po::value(&raw.randomization_trials)->default_value(10000)->value_name("N"),
                      "its trials; -parn");
  tests.add_options()("seed",
                      po::value(&spec.seed)->default_value(significance_seed)->value_name("N"),
                      "of the generator (numpy's PCG64)");
  output.add_options()("score-only,b", po::bool_switch(&spec.score_only), "nothing but the score");
  output.add_options()("width,w", po::value(&spec.width)->default_value(1)->value_name("N"),
                       "digits behind the point");
  output.add_options()("format,f",
                       po::value(&raw.format)->default_value("json")->value_name("NAME"),
                       "json or text");
  output.add_options()("quiet,q", po::bool_switch(&spec.quiet), "no warnings");
  output.add_options()("help,h", "this text")("version,V", "the version");
  po::options_description all;
  return all.add(files).add(metrics).add(tests).add(output);
}

// One letter with dash, long names with underscores as dashes.
Words normalized(const Words& arguments) {
  Words out;
  bool open = true;
  for (std::string argument : arguments) {
    open = open && argument != "--";
    if (open && letters.contains(argument)) argument = letters.at(argument);
    if (open && argument.starts_with("--"))
      std::replace(argument.begin(),
                   argument.begin() +
                       static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())),
                   '_', '-');
    out.push_back(argument);
  }
  return out;
}

void check_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    fail(ExitStatus::usage, "--{} {}: expected a whole number from {} to {}", option, value, low,
         high);
}

void check(BleuSpec& spec, const Raw& raw, const po::variables_map& given) {
  spec.bleu.tokenizer = bleu_tokenizer(raw.tokenize);
  spec.bleu.smoothing = bleu_smoothing(raw.smooth_method);
  if (given.count("smooth-value")) {
    if (spec.bleu.smoothing != BleuSmoothing::floor && spec.bleu.smoothing != BleuSmoothing::add_k)
      fail(ExitStatus::usage, "--smooth-value {}: only floor and add-k take one, not {}",
           raw.smooth_value, raw.smooth_method);
    if (!(raw.smooth_value >= 0))
      fail(ExitStatus::usage, "--smooth-value {}: expected a number of at least 0",
           raw.smooth_value);
    spec.bleu.smoothing_value = raw.smooth_value;
  }
  for (const std::string& name : spec.metrics)
    if (name != "bleu" && name != "chrf")
      fail(ExitStatus::usage, "--metrics: '{}' is none of bleu, chrf", name);
  if (raw.format != "json" && raw.format != "text")
    fail(ExitStatus::usage, "--format: '{}' is none of json, text", raw.format);
  spec.json = raw.format == "json";
  check_range("num-refs", spec.reference_fields, 1, 1000);
  check_range("chrf-char-order", spec.chrf.character_order, 1, chrf_orders);
  check_range("chrf-word-order", spec.chrf.word_order, 0, chrf_orders - spec.chrf.character_order);
  check_range("chrf-beta", spec.chrf.beta, 0, 1000);
  check_range("confidence-n", spec.confidence_samples, 2, 10'000'000);
  check_range("paired-bs-n", raw.paired_bootstrap_samples, 1, 10'000'000);
  check_range("paired-ar-n", raw.randomization_trials, 1, 10'000'000);
  check_range("width", spec.width, 0, 100);
  const bool bootstrap = given.count("paired-bs") > 0, randomization = given.count("paired-ar") > 0;
  if (bootstrap && randomization)
    fail(ExitStatus::usage, "--paired-bs and --paired-ar exclude each other");
  spec.paired = bootstrap       ? PairedTest::bootstrap
                : randomization ? PairedTest::randomization
                                : PairedTest::none;
  spec.paired_samples = bootstrap ? raw.paired_bootstrap_samples : raw.randomization_trials;
  const bool tested = spec.confidence || spec.paired != PairedTest::none;
  const std::size_t systems = std::max<std::size_t>(spec.inputs.size(), 1);
  if (spec.references.empty())
    fail(ExitStatus::usage, "no reference file; usage: nmt-bleu REF [REF...] -i HYP [HYP...]");
  if (spec.reference_fields > 1 && spec.references.size() > 1)
    fail(ExitStatus::usage, "--num-refs {} takes one reference file, not {}", spec.reference_fields,
         spec.references.size());
  if (spec.paired != PairedTest::none && systems < 2)
    fail(ExitStatus::usage, "a paired test needs two systems or more behind --input");
  if (spec.confidence && systems > 1)
    fail(ExitStatus::usage,
         "--confidence takes one system, not {}; --paired-bs gives intervals for several", systems);
  if ((spec.sentence_level || spec.lineage) && (systems > 1 || tested || spec.metrics.size() > 1))
    fail(ExitStatus::usage, "--{} takes one system and one metric, and no significance test",
         spec.lineage ? "lineage" : "sentence-level");
  if (spec.lineage &&
      (spec.sentence_level || spec.metrics[0] != "bleu" || !given["tokenize"].defaulted() ||
       !given["smooth-method"].defaulted() || spec.bleu.lowercase))
    fail(ExitStatus::usage,
         "--lineage is BLEU by its own four definitions; leave out --metrics, --tokenize, "
         "--smooth-method, "
         "--lowercase, --sentence-level");
  spec.bleu.effective_order = spec.sentence_level;
}

constexpr const char* usage =
    "nmt-bleu: BLEU and chrF of detokenized text, equal to sacreBLEU's to the printed digit\n"
    "Usage: nmt-bleu REF [REF...] -i HYP [HYP...]\n"
    "       nmt-bleu REF < HYP\n\n"
    "  nmt-bleu ref.de -i mine.de -b -w 2                 the BLEU score alone, two digits\n"
    "  nmt-bleu ref.de -i mine.de -m bleu chrf            BLEU and chrF with signatures\n"
    "  nmt-bleu ref.de -i mine.de --confidence -f text    with a 95 % interval\n"
    "  nmt-bleu ref.de -i base.de mine.de --paired-bs     is mine better than base?\n";

}  // namespace

bool parse_bleu_command(const std::vector<std::string>& arguments, BleuSpec& spec) {
  Raw raw;
  const po::options_description visible = options(spec, raw);
  po::options_description all;
  all.add(visible).add_options()("references", po::value<Words>(&spec.references));
  po::positional_options_description positional;
  positional.add("references", -1);
  po::variables_map given;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(normalized(arguments))
                  .options(all)
                  .positional(positional)
                  .style(style)
                  .run(),
              given);
    if (given.count("help") || given.count("version")) {
      std::ostringstream text;
      if (given.count("help"))
        text << usage << visible;
      else
        text << "nmt-bleu " << NMT_VERSION << '\n';
      print(text.str());
      return false;
    }
    po::notify(given);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> names;
    for (const auto& option : visible.options()) names.push_back("--" + option->long_name());
    for (const auto& [letter, name] : letters) names.push_back(letter);
    const std::string near = config::nearest(error.get_option_name(), names);
    fail(ExitStatus::usage, "unknown option {}{}; --help lists all", error.get_option_name(),
         near.empty() ? "" : " (did you mean " + near + "?)");
  } catch (const po::validation_error& error) {
    fail(ExitStatus::usage, "{}; expected {}", error.what(),
         error.get_option_name().find("smooth-value") != std::string::npos ? "a number"
                                                                           : "a whole number");
  } catch (const po::error& error) {
    fail(ExitStatus::usage, "{}; --help lists all options", error.what());
  }
  check(spec, raw, given);
  return true;
}

}  // namespace nmt::app
