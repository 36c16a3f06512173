#include "app/distill/measurement.h"

#include "app/distill/model_size.h"
#include "app/translate/translate.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "text/lines.h"

#include <algorithm>
#include <ctime>
#include <span>

namespace nmt::app {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::max(static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC, 1e-6);
  }

 private:
  std::clock_t start_ = std::clock();
};

std::int64_t words_of(std::span<const std::string> lines) {
  std::size_t words = 0;
  for (const std::string& line : lines) words += count_words(line, line.size()).count;
  return static_cast<std::int64_t>(words);
}

std::vector<std::string> best_of(const std::vector<LineTranslation>& translations) {
  std::vector<std::string> texts;
  for (const LineTranslation& translation : translations)
    texts.push_back(translation.outputs.at(0).text);
  return texts;
}

}  // namespace

Measurement measure(const Candidate& candidate, const std::vector<std::string>& sources,
                    std::int64_t alone) {
  TranslateSpec spec = candidate.spec;
  spec.compute.device = "cpu";
  spec.compute.cpu_threads = 1;
  Measurement row;
  row.name = candidate.name;
  for (const std::string& model : spec.models.models) {
    const ModelSize size = model_size(model);
    row.megabytes += 1e-6 * static_cast<double>(size.bytes);
    row.parameters += size.weights;
  }

  const std::span<const std::string> all = sources;
  spec.search.mini_batch = 1;
  const Stopwatch opening;
  OpenTranslator one(spec, "nmt-distill: " + candidate.name);
  one.translator().translate(all.first(1));
  row.first = 1e3 * opening.seconds();

  const auto some = all.first(std::min(all.size(), static_cast<std::size_t>(alone)));
  const Stopwatch singly;
  one.translator().translate(some);
  const double single_time = singly.seconds();
  row.sentences_alone = static_cast<double>(some.size()) / single_time;
  row.words_alone = static_cast<double>(words_of(some)) / single_time;

  spec.search.mini_batch = 64;
  OpenTranslator batched(spec, "nmt-distill", one.models());
  const Stopwatch together;
  row.outputs = best_of(batched.translator().translate(all));
  const double time = together.seconds();
  row.sentences = static_cast<double>(all.size()) / time;
  row.words = static_cast<double>(words_of(all)) / time;
  return row;
}

std::string table_text(const std::vector<Measurement>& rows, const std::string& title) {
  std::string text = title + "\n\n";
  text +=
      "| model | MB | weights | BLEU | words/s | sentences/s | words/s alone | sentences/s alone | "
      "first, ms | speed |\n|---|---|---|---|---|---|---|---|---|---|\n";
  const auto whole = [](double number) { return grouped(static_cast<std::int64_t>(number + 0.5)); };
  for (const Measurement& row : rows)
    text += fmt::format("| {} | {:.1f} | {} | {:.2f} | {} | {} | {} | {} | {:.0f} | {:.1f} |\n",
                        row.name, row.megabytes, grouped(row.parameters), row.bleu,
                        whole(row.words), whole(row.sentences), whole(row.words_alone),
                        whole(row.sentences_alone), row.first, row.words / rows.front().words);
  return text;
}

nlohmann::ordered_json table_json(const std::vector<Measurement>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Measurement& row : rows)
    list.push_back({{"model", row.name},
                    {"megabytes", row.megabytes},
                    {"weights", row.parameters},
                    {"bleu", row.bleu},
                    {"words-per-second", row.words},
                    {"sentences-per-second", row.sentences},
                    {"words-per-second-alone", row.words_alone},
                    {"sentences-per-second-alone", row.sentences_alone},
                    {"first-ms", row.first},
                    {"speed", row.words / rows.front().words}});
  return list;
}

}  // namespace nmt::app
