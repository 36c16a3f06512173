#include "app/report/development_report.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/nlohmann.h"
#include "eval/significance.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
constexpr int resamples = 1000;

// Translations of the development set.
struct DevelopmentSet {
  std::int64_t updates = 0;
  std::vector<std::string> sources, references, outputs;
};

std::optional<DevelopmentSet> read_development(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  DevelopmentSet set;
  try {
    const Json json = Json::parse(read_file(path));
    if (!json.at("updates").is_number_integer())
      throw Json::type_error::create(302, "updates is no integer", &json);
    json.at("updates").get_to(set.updates);
    json.at("sources").get_to(set.sources);
    json.at("references").get_to(set.references);
    json.at("outputs").get_to(set.outputs);
  } catch (const Json::exception&) {
    fail(ExitStatus::data, "{}: is not a list of translations as nmt-train writes it", path);
  }
  const std::size_t count = set.outputs.size();
  if (count == 0 || set.sources.size() != count || set.references.size() != count)
    fail(ExitStatus::data, "{}: {} sources, {} references and {} outputs; expected equal numbers",
         path, set.sources.size(), set.references.size(), count);
  return set;
}

Json score_development(const DevelopmentSet& set) {
  Json result{{"updates", set.updates}, {"sentences", set.outputs.size()}};
  const auto corpus = bleu_metric({});
  const SentenceCounts counts = sentence_counts(*corpus, set.outputs, {set.references});
  Json& bleu = result["bleu"] = {{"score", corpus->score(counts.sum())},
                                 {"mean", nullptr},
                                 {"half_width", nullptr},
                                 {"signature", corpus->signature(1)}};
  if (set.outputs.size() > 1) {
    const Interval interval = confidence_interval(*corpus, counts, resamples);
    bleu["mean"] = interval.mean;
    bleu["half_width"] = interval.half_width;
  }
  result["chrf"] = {{"score", corpus_chrf(set.outputs, set.references)},
                    {"signature", chrf_signature({}, 1)}};
  const BleuScore words = corpus_bleu(set.outputs, set.references);
  result["length_ratio"] =
      static_cast<double>(words.counts.hypothesis_length) /
      static_cast<double>(std::max<std::int64_t>(words.counts.reference_length, 1));
  std::int64_t copied = 0, empty = 0;
  for (std::size_t i = 0; i < set.outputs.size(); ++i) {
    copied += !set.sources[i].empty() && set.outputs[i] == set.sources[i];
    empty += set.outputs[i].empty();
  }
  result["copied"] = copied;
  result["empty"] = empty;
  return result;
}

// The `count` sentences with the lowest chrF, then BLEU.
Json worst_sentences(const DevelopmentSet& set, int count) {
  std::vector<double> chrf, bleu;
  BleuOptions effective;
  effective.effective_order = true;  // otherwise sentences of fewer than 4 words score 0
  for (std::size_t i = 0; i < set.outputs.size(); ++i) {
    chrf.push_back(corpus_chrf({set.outputs[i]}, {set.references[i]}));
    bleu.push_back(corpus_bleu({set.outputs[i]}, {set.references[i]}, effective).score);
  }
  std::vector<std::size_t> order(set.outputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(chrf[a], bleu[a]) < std::pair(chrf[b], bleu[b]);
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  Json result = Json::array();
  for (const std::size_t i : order)
    result.push_back({{"line", i + 1},
                      {"chrf", chrf[i]},
                      {"bleu", bleu[i]},
                      {"source", set.sources[i]},
                      {"reference", set.references[i]},
                      {"output", set.outputs[i]}});
  return result;
}

}  // namespace

Json development_report(const std::string& path, int worst) {
  const std::optional<DevelopmentSet> set = read_development(path);
  if (!set) return {};
  Json result = score_development(*set);
  result["worst"] = worst_sentences(*set, worst);
  return result;
}

}  // namespace nmt::app
