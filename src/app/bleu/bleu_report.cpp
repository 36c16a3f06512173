#include "app/bleu/bleu_report.h"

#include "core/log.h"
#include "core/nlohmann.h"
#include "eval/metric.h"
#include "eval/rouge.h"
#include "eval/significance.h"
#include "eval/ter.h"
#include "text/utf8.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;
using Metrics = std::vector<std::unique_ptr<Metric>>;

std::string digits(double value, int width) {
  return fmt::format("{:.{}f}", value, width);
}

// Sorted by name, as in sacreBLEU.
Metrics metrics_of(const BleuSpec& spec) {
  Metrics metrics;
  const auto wanted = [&](std::string_view name) {
    return std::find(spec.metrics.begin(), spec.metrics.end(), name) != spec.metrics.end();
  };
  BleuOptions bleu = spec.bleu;
  bleu.effective_order = spec.sentence_level;
  if (wanted("bleu")) metrics.push_back(bleu_metric(bleu));
  if (wanted("chrf")) metrics.push_back(chrf_metric(spec.chrf));
  for (const RougeType type : {RougeType::rouge1, RougeType::rouge2, RougeType::rouge_l})
    if (wanted("rouge") || wanted(name_of(type))) metrics.push_back(rouge_metric(type));
  if (wanted("ter")) metrics.push_back(ter_metric(TerOptions{}));
  return metrics;
}

// One score with its signature, in the formats of sacreBLEU's Score.format().
struct Line {
  std::string left, right;  // around " = "
  std::string score;
  Json json;
};

Line line_of(const Metric& metric, const std::vector<std::int64_t>& sum,
             const std::optional<Interval>& interval, const std::string& signature, int width) {
  Line line;
  line.score = digits(metric.score(sum), width);
  line.json = {{"name", metric.name()},
               {"score", std::strtod(line.score.c_str(), nullptr)},
               {"signature", signature}};
  if (interval && interval->mean > 0) {
    const std::string mean = digits(interval->mean, width),
                      half = digits(interval->half_width, width);
    const std::string text = fmt::format("μ = {} ± {}", mean, half);
    line.score += fmt::format(" ({})", text);
    line.json["confidence_mean"] = std::strtod(mean.c_str(), nullptr);
    line.json["confidence_var"] = std::strtod(half.c_str(), nullptr);
    line.json["confidence"] = text;
  }
  line.left = metric.name() + "|" + signature;
  line.right = line.score;
  if (const std::string more = metric.verbose(sum); !more.empty()) {
    line.right += " " + more;
    line.json["verbose_score"] = more;
  }
  for (std::size_t begin = 0; begin < signature.size();) {
    const std::size_t end = std::min(signature.find('|', begin), signature.size()),
                      colon = signature.find(':', begin);
    line.json[signature.substr(begin, colon - begin)] =
        signature.substr(colon + 1, end - colon - 1);
    begin = end + 1;
  }
  return line;
}

std::string written(const std::vector<Line>& lines, const BleuSpec& spec) {
  const bool json = spec.format == ReportFormat::json;
  std::string out;
  std::size_t longest = 0;
  for (const Line& line : lines) longest = std::max(longest, line.left.size());
  for (const Line& line : lines) {
    if (spec.score_only)
      out += line.score;
    else if (json)
      out += dump_json(line.json, 1);
    else
      out += fmt::format("{:>{}} = {}", line.left, longest, line.right);
    out += json && lines.size() > 1 && &line != &lines.back() ? ",\n" : "\n";
  }
  return json && lines.size() > 1 ? "[\n" + out + "]\n" : out;
}

std::string one_system(const BleuSpec& spec, const Metrics& metrics, const System& system,
                       const std::vector<Lines>& references) {
  std::vector<Line> lines;
  for (const auto& metric : metrics) {
    const SentenceCounts counts = sentence_counts(*metric, system.lines, references);
    std::optional<Interval> interval;
    std::string trials;
    if (spec.confidence) {
      interval = confidence_interval(*metric, counts, spec.confidence_samples, spec.seed);
      trials = fmt::format("bs:{}|seed:{}|", spec.confidence_samples, spec.seed);
    }
    lines.push_back(line_of(*metric, counts.sum(), interval,
                            metric->signature(static_cast<int>(references.size()), trials),
                            spec.width));
  }
  return written(lines, spec);
}

std::string lineage(const BleuSpec& spec, const System& system,
                    const std::vector<Lines>& references) {
  std::size_t stops = 0, tokenized = 0;
  for (const std::string& line : system.lines) {
    stops += line.ends_with('.');
    tokenized += line.ends_with(" .");
  }
  if (tokenized * 2 < stops)
    log::warn(
        "{}: does not look tokenized; the line tok:multi-bleu, for tokenized text, scores it as it "
        "stands",
        system.name);
  BleuOptions cased, lowercased, international;
  lowercased.lowercase = international.lowercase = true;
  international.tokenizer = BleuTokenizer::intl;
  std::vector<Line> lines;
  for (const BleuOptions& options : {cased, lowercased, international, multi_bleu_options(false)}) {
    const auto metric = bleu_metric(options);
    const SentenceCounts counts = sentence_counts(*metric, system.lines, references);
    lines.push_back(line_of(*metric, counts.sum(), {},
                            metric->signature(static_cast<int>(references.size())), spec.width));
  }
  return written(lines, spec);
}

// sacreBLEU always prints these as text.
std::string sentence_scores(const BleuSpec& spec, const Metric& metric, const System& system,
                            const std::vector<Lines>& references) {
  const std::string signature = metric.signature(static_cast<int>(references.size()));
  std::string out;
  Lines of_sentence(references.size());
  for (std::size_t i = 0; i < system.lines.size(); ++i) {
    for (std::size_t k = 0; k < references.size(); ++k) of_sentence[k] = references[k][i];
    const Line line =
        line_of(metric, metric.row(system.lines[i], of_sentence), {}, signature, spec.width);
    out += (spec.score_only ? line.score : line.left + " = " + line.right) + "\n";
  }
  return out;
}

std::string table(const std::vector<Lines>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const Lines& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], count_characters(row[c]));
  std::string out;
  for (const Lines& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      out += std::string(widths[c] - count_characters(row[c]) + (c ? 2 : 0), ' ') + row[c];
    out += '\n';
  }
  return out;
}

// A line for each system: the scores of its metrics, between tabs.
std::string scores_of_systems(const BleuSpec& spec, const Metrics& metrics,
                              const std::vector<System>& systems,
                              const std::vector<Lines>& references) {
  std::string out;
  for (const System& system : systems) {
    for (const auto& metric : metrics) {
      const double score = metric->score(sentence_counts(*metric, system.lines, references).sum());
      out += (&metric == &metrics.front() ? "" : "\t") + digits(score, spec.width);
    }
    out += '\n';
  }
  return out;
}

std::string several_systems(const BleuSpec& spec, const Metrics& metrics,
                            const std::vector<System>& systems,
                            const std::vector<Lines>& references) {
  const bool paired = spec.paired() != PairedTest::none,
             bootstrap = spec.paired() == PairedTest::bootstrap;
  const std::string trials = paired ? fmt::format("{}:{}|seed:{}|", bootstrap ? "bs" : "ar",
                                                  spec.paired_samples(), spec.seed)
                                    : "";
  std::vector<Lines> rows{{"System"}};
  std::vector<Json> json;
  std::string signatures;
  for (std::size_t s = 0; s < systems.size(); ++s) {
    rows.push_back({paired && s == 0 ? "Baseline: " + systems[s].name : systems[s].name});
    json.push_back({{"system", rows.back()[0]}});
  }
  for (const auto& metric : metrics) {
    std::vector<SentenceCounts> counts;
    for (const System& system : systems)
      counts.push_back(sentence_counts(*metric, system.lines, references));
    // As sacreBLEU, the tests count the resamples that differ by more than the outputs themselves.
    // The difference of equal counts is 0, so p is small where it should be 1.
    const auto is_baseline = [&](std::size_t s) { return counts[s].values == counts[0].values; };
    for (std::size_t s = 1; paired && s < systems.size(); ++s)
      if (is_baseline(s))
        log::warn("{}: {} equals the baseline in every line: its p-value is not meaningful",
                  systems[s].name, metric->name());
    std::vector<PairedResult> results;
    if (bootstrap)
      results = paired_bootstrap(*metric, counts, spec.paired_samples(), spec.seed);
    else if (paired)
      results = paired_randomization(*metric, counts, spec.paired_samples(), spec.seed);
    else
      for (const SentenceCounts& c : counts)
        results.push_back({metric->score(c.sum()), -1, false, {}});
    rows[0].push_back(metric->name() + (bootstrap ? " (μ ± 95% CI)" : ""));
    signatures += fmt::format("{:<8} {}\n", metric->name(),
                              metric->signature(static_cast<int>(references.size()), trials));
    for (std::size_t s = 0; s < systems.size(); ++s) {
      const PairedResult& r = results[s];
      std::string text = digits(r.score, spec.width);
      Json value = text;
      if (paired)
        value = {{"score", r.score}, {"p_value", nullptr}, {"mean", nullptr}, {"ci", nullptr}};
      if (r.has_interval) {
        text += fmt::format(" ({} ± {})", digits(r.interval.mean, spec.width),
                            digits(r.interval.half_width, spec.width));
        value["mean"] = r.interval.mean;
        value["ci"] = r.interval.half_width;
      }
      if (r.p_value >= 0) {
        text += fmt::format(" (p = {:.4f}){}", r.p_value,
                            r.p_value > 0.05 || is_baseline(s) ? " " : "*");
        value["p_value"] = r.p_value;
      } else if (paired) {
        text += std::string(15, ' ');
      }
      rows[s + 1].push_back(text);
      json[s][metric->name()] = value;
    }
  }
  if (spec.format == ReportFormat::json) return dump_json(Json(json), 4) + "\n";
  std::string out = table(rows) + "\n" + signatures;
  if (paired)
    out += fmt::format(
        "p: chance of a difference at least as large as that from the baseline if both systems "
        "were alike ({} {}); * p "
        "<= 0.05\n",
        spec.paired_samples(),
        bootstrap ? "paired bootstrap resamples" : "trials of approximate randomization");
  return out;
}

}  // namespace

std::string report(const BleuSpec& spec, const std::vector<System>& systems,
                   const std::vector<Lines>& references) {
  if (spec.lineage) return lineage(spec, systems[0], references);
  const Metrics metrics = metrics_of(spec);
  if (spec.sentence_level) return sentence_scores(spec, *metrics[0], systems[0], references);
  if (systems.size() > 1 && spec.score_only)
    return scores_of_systems(spec, metrics, systems, references);
  if (systems.size() > 1) return several_systems(spec, metrics, systems, references);
  return one_system(spec, metrics, systems[0], references);
}

}  // namespace nmt::app
