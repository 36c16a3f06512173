#include "app/explain/explanation.h"

#include "app/explain/gate_memory.h"
#include "app/models/model_text.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "data/batch.h"
#include "tensor/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

// Rounds to six significant digits, which suffice for a page and need a third of the bytes.
double rounded(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}  // strtod, since std::stod throws at 1e-310
Json rounded(const std::optional<double>& value) {
  return value ? Json(rounded(*value)) : Json();
}
Json rounded(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values) list.push_back(rounded(v));
  return list;
}

// Adds the pieces and, for each, the index of its word; </s> counts as a word.
void add_pieces(Json& json, const std::string& side, const Vocabulary& vocabulary,
                const std::vector<std::int32_t>& ids) {
  Json pieces = Json::array(), words = Json::array();
  int word = -1;
  for (const std::int32_t id : ids) {
    if (word < 0 || id == vocabulary.eos() || vocabulary.starts_word(id)) ++word;
    pieces.push_back(vocabulary.piece(id));
    words.push_back(word);
  }
  json[side + "_pieces"] = std::move(pieces);
  json[side + "_words"] = std::move(words);
}

std::span<const float> span_of(const Tensor& tensor) {
  return tensor ? std::span<const float>(tensor.f32(), static_cast<std::size_t>(tensor.elements()))
                : std::span<const float>();
}

// A gate [n,1,H] in reading order.
std::vector<float> in_reading_order(const Tensor& gate, std::int64_t width, bool reverse) {
  std::vector<float> values(gate.f32(), gate.f32() + gate.elements());
  if (!reverse) return values;
  std::vector<float> turned;
  for (std::int64_t t = gate.elements() / width - 1; t >= 0; --t)
    turned.insert(turned.end(), values.begin() + t * width, values.begin() + (t + 1) * width);
  return turned;
}

// For each step in reading order: the earlier step with the largest weight in the state after it.
Json strongest(const std::vector<std::vector<double>>& weights, bool reverse) {
  const std::int64_t n = std::ssize(weights);
  const auto position = [&](std::int64_t step) { return reverse ? n - 1 - step : step; };
  Json list = Json::array();
  for (std::int64_t t = 1; t < n; ++t) {
    std::int64_t best = 0;
    const auto at = [&](std::int64_t k) {
      return weights[static_cast<std::size_t>(k)][static_cast<std::size_t>(t - k)];
    };
    for (std::int64_t k = 1; k < t; ++k)
      if (at(k) >= at(best)) best = k;
    list.push_back({{"at", position(t)}, {"from", position(best)}, {"weight", rounded(at(best))}});
  }
  return list;
}

// Statistics of one unit over all sentences.
struct UnitTotals {
  std::vector<double> input, forget;  // sums of the channel means by position
  std::vector<std::int64_t> sentences;
  Correlation values;
  std::vector<double> gradient;  // sums of the gradient norms by distance
  std::vector<std::int64_t> gradient_sentences;
};

// The gates of a unit over one sentence.
struct SentenceGates {
  explicit SentenceGates(const GateRecord& record)
      : steps(record.input.shape()[0]),
        width(record.gates),
        input(record.input.f32(), static_cast<std::size_t>(steps * width)),
        forget(record.forget.f32(), static_cast<std::size_t>(steps * width)),
        input_means(channel_means(steps, width, input)),
        forget_means(channel_means(steps, width, forget)) {}

  std::int64_t steps, width;
  std::span<const float> input, forget;           // [steps, width]
  std::vector<double> input_means, forget_means;  // over channels, by position
};

Correlation correlation_of_means(const SentenceGates& gates) {
  Correlation result;
  for (std::size_t t = 0; t < gates.input_means.size(); ++t)
    result.add(gates.input_means[t], gates.forget_means[t]);
  return result;
}

Correlation correlation_of_values(const SentenceGates& gates) {
  Correlation result;
  for (std::size_t j = 0; j < gates.input.size(); ++j) result.add(gates.input[j], gates.forget[j]);
  return result;
}

// Adds a sentence to the statistics of its unit.
void add_totals(const SentenceGates& gates, const std::optional<std::vector<double>>& gradient,
                UnitTotals& total) {
  total.input.resize(std::max(total.input.size(), gates.input_means.size()));
  total.forget.resize(total.input.size());
  total.sentences.resize(total.input.size());
  for (std::size_t t = 0; t < gates.input_means.size(); ++t) {
    total.input[t] += gates.input_means[t];
    total.forget[t] += gates.forget_means[t];
    ++total.sentences[t];
  }
  for (std::size_t j = 0; j < gates.input.size(); ++j)
    total.values.add(gates.input[j], gates.forget[j]);
  if (!gradient) return;
  total.gradient.resize(std::max(total.gradient.size(), gradient->size()));
  total.gradient_sentences.resize(total.gradient.size());
  for (std::size_t d = 0; d < gradient->size(); ++d) {
    total.gradient[d] += (*gradient)[d];
    ++total.gradient_sentences[d];
  }
}

}  // namespace

struct Explanation::Parts {
  struct Kept {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  LoadedModel& model;
  BatchTranslator& translator;
  bool keep_gates;
  Json head, units = Json::array(), sentences = Json::array();
  std::vector<UnitTotals> totals;
  std::vector<Kept> kept;
  bool dropped_warned = false;

  void warn_of_dropped(std::int64_t line, std::size_t given, std::size_t used, std::size_t tokens);
  void describe(const Probe& probe);
  std::optional<std::vector<double>> gradient_of(const Probe& probe, std::size_t which) const;
  GatedMemory memory_of(const Probe& probe, std::size_t which) const;
  void keep(const GateRecord& record, const SentenceGates& gates, std::int64_t line);
  Json unit(const Probe& probe, std::size_t which, std::int64_t line);
};

// Warns of the first line whose context does not fit.
void Explanation::Parts::warn_of_dropped(std::int64_t line, std::size_t given, std::size_t used,
                                         std::size_t tokens) {
  if (tokens == 0 || used == given || std::exchange(dropped_warned, true)) return;
  log::warn(
      "line {} has {} tokens; with it, the model reads {} of {} context sentences (max-length {} "
      "limits both together); further such lines are not reported",
      line, tokens, used, given, translator.options().batching.max_length);
}

// All sentences have the same units.
void Explanation::Parts::describe(const Probe& probe) {
  if (!units.empty()) return;
  totals.resize(probe.units.size());
  std::vector<bool> has_higher(probe.units.size());
  for (const GateRecord& record : probe.units)
    if (record.lower >= 0) has_higher[static_cast<std::size_t>(record.lower)] = true;
  for (std::size_t i = 0; i < probe.units.size(); ++i) {
    const GateRecord& record = probe.units[i];
    units.push_back({{"name", record.name},
                     {"unit", record.unit->name},
                     {"variant", record.unit->variant},
                     {"width", record.width},
                     {"reads", i < probe.encoder_units ? "source" : "target"},
                     {"direction", record.reverse ? "backward" : "forward"},
                     {"step", record.lower >= 0 ? "higher"
                              : has_higher[i]   ? "lower"
                                                : "alone"},
                     {"partner", nullptr},
                     {"gates", static_cast<bool>(record.input)},
                     {"gate_values", record.gates}});
    if (record.lower >= 0) {
      units[i]["partner"] = record.lower;
      units[static_cast<std::size_t>(record.lower)]["partner"] = i;
    }
  }
}

// The gradient norms of a unit's state by distance; none for matrix units.
std::optional<std::vector<double>> Explanation::Parts::gradient_of(const Probe& probe,
                                                                   std::size_t which) const {
  const GateRecord& record = probe.units[which];
  const auto slopes = [](const GateRecord& of) {
    return of.slope ? in_reading_order(of.slope, of.width, of.reverse) : std::vector<float>();
  };
  const std::vector<float> own = slopes(record);
  if (own.empty()) return std::nullopt;
  std::vector<float> other;
  if (!units[which]["partner"].is_null()) {
    other = slopes(probe.units[units[which]["partner"].get<std::size_t>()]);
    if (other.empty()) return std::nullopt;
  }
  return gradient_norms(record.slope.shape()[0], record.width, state_slopes(own, other));
}

// The gates of a unit in reading order, with those of its partner in the step.
GatedMemory Explanation::Parts::memory_of(const Probe& probe, std::size_t which) const {
  const GateRecord& record = probe.units[which];
  const std::int64_t n = record.input.shape()[0], h = record.gates;
  const std::vector<float> input = in_reading_order(record.input, h, record.reverse),
                           forget = in_reading_order(record.forget, h, record.reverse);
  const Json& partner = units[which]["partner"];
  if (partner.is_null()) return gated_memory(n, h, input, forget);
  const std::vector<float> other =
      in_reading_order(probe.units[partner.get<std::size_t>()].forget, h, record.reverse);
  return record.lower >= 0 ? gated_memory_higher(n, h, input, forget, other)
                           : gated_memory_lower(n, h, input, forget, other);
}

// Keeps the gates of a unit for save_gates().
void Explanation::Parts::keep(const GateRecord& record, const SentenceGates& gates,
                              std::int64_t line) {
  for (const auto& [name, values] :
       {std::pair{"input", gates.input}, std::pair{"forget", gates.forget},
        std::pair{"slope", span_of(record.slope)}})
    if (!values.empty())
      kept.push_back({fmt::format("{}.{}.{}", line, record.name, name),
                      {gates.steps, gates.width},
                      {values.begin(), values.end()}});
}

Json Explanation::Parts::unit(const Probe& probe, std::size_t which, std::int64_t line) {
  const GateRecord& record = probe.units[which];
  if (!record.input) return {};
  const SentenceGates gates(record);
  const std::optional<std::vector<double>> gradient = gradient_of(probe, which);
  add_totals(gates, gradient, totals[which]);
  if (keep_gates) keep(record, gates, line);
  const std::vector<std::vector<double>> weights = memory_weights(memory_of(probe, which));
  Json curves = Json::array();
  for (std::int64_t k = 0; k < gates.steps; ++k)
    curves.push_back(
        rounded(weights[static_cast<std::size_t>(record.reverse ? gates.steps - 1 - k : k)]));
  return Json{{"input", rounded(gates.input_means)},
              {"forget", rounded(gates.forget_means)},
              {"pearson_means", rounded(correlation_of_means(gates).value())},
              {"pearson_values", rounded(correlation_of_values(gates).value())},
              {"gradient", gradient ? rounded(*gradient) : Json()},
              {"memory", std::move(curves)},
              {"strongest", strongest(weights, record.reverse)}};
}

Explanation::Explanation(LoadedModel& model, BatchTranslator& translator,
                         const std::string& directory, bool keep_gates)
    : parts_(std::make_unique<Parts>(
          Parts{model, translator, keep_gates, {}, Json::array(), Json::array(), {}, {}})) {
  parts_->head = {{"format", "nmt-explain"},
                  {"version", 1},
                  {"nmt", NMT_VERSION},
                  {"model",
                   {{"name", directory_name(directory)},
                    {"summary", model_summary(model.model().spec())},
                    {"updates", model.updates()},
                    {"alignment_head", model.model().spec().alignment_head}}}};
}

Explanation::~Explanation() = default;

void Explanation::add(const std::string& line, const ContextSentences& context,
                      std::int64_t number) {
  Parts& p = *parts_;
  const Vocabulary &source_vocabulary = p.model.source_vocabulary(),
                   &target_vocabulary = p.model.target_vocabulary();
  const BatchTranslatorOptions& options = p.translator.options();
  const std::span lines(&line, 1);
  const std::span contexts(&context, 1);
  const Output output = p.translator.translate(lines, number, contexts).at(0).outputs.at(0);
  const SourceEncoder encoder(source_vocabulary, options.context_sentences,
                              options.batching.max_length, false);
  const EncodedSource input = encoder.encode(lines, contexts, *options.search.cpu.pool).at(0);
  std::vector<std::int32_t> source = input.source.ids, target = output.ids;
  Json sentence{{"line", number},
                {"source", line},
                {"translation", output.text},
                {"log_probability", rounded(output.log_prob)},
                {"score", rounded(output.score)}};
  if (options.context_sentences > 0) {
    const std::span<const std::string> used = encoder.used_context(context, input.tokens);
    p.warn_of_dropped(number, context.size(), used.size(), input.tokens);
    sentence["context"] = ContextSentences(used.begin(), used.end());
    sentence["context_pieces"] = input.source.context;
  }
  if (source.empty()) {
    for (const char* name :
         {"source_pieces", "source_words", "target_pieces", "target_words", "attention", "units"})
      sentence[name] = Json::array();
    p.sentences.push_back(std::move(sentence));
    return;
  }
  const Probe probe = p.model.model().probe(
      make_batch({&source}, {&target}, target_vocabulary.bos(), target_vocabulary.eos()));
  source.push_back(source_vocabulary.eos());
  target.push_back(target_vocabulary.eos());
  add_pieces(sentence, "source", source_vocabulary, source);
  add_pieces(sentence, "target", target_vocabulary, target);
  Json& attention = sentence["attention"] = Json::array();
  if (probe.attention) {
    const Shape& shape = probe.attention.shape();  // [T,1,heads,S]
    const std::int64_t steps = shape[0], heads = shape[2], width = shape[3];
    for (std::int64_t head = 0; head < heads; ++head) {
      Json& map = attention.emplace_back(Json::array());
      for (std::int64_t t = 0; t < steps; ++t) {
        const float* row = probe.attention.f32() + (t * heads + head) * width;
        map.push_back(rounded(std::vector<double>(row, row + width)));
      }
    }
  }
  p.describe(probe);
  Json& units = sentence["units"] = Json::array();
  for (std::size_t which = 0; which < probe.units.size(); ++which)
    units.push_back(p.unit(probe, which, number));
  p.sentences.push_back(std::move(sentence));
}

Json Explanation::json() const {
  const Parts& p = *parts_;
  Json json = p.head;
  json["units"] = p.units;
  Json& overall = json["overall"] = Json::array();
  for (const UnitTotals& total : p.totals) {
    if (total.input.empty()) {
      overall.push_back(nullptr);
      continue;
    }
    std::vector<double> input, forget;
    std::vector<double> gradient = total.gradient;
    for (std::size_t d = 0; d < gradient.size(); ++d)
      gradient[d] /= static_cast<double>(total.gradient_sentences[d]);
    Correlation of_means;
    for (std::size_t t = 0; t < total.input.size(); ++t) {
      input.push_back(total.input[t] / static_cast<double>(total.sentences[t]));
      forget.push_back(total.forget[t] / static_cast<double>(total.sentences[t]));
      of_means.add(input.back(), forget.back());
    }
    overall.push_back({{"input", rounded(input)},
                       {"forget", rounded(forget)},
                       {"sentences", total.sentences},
                       {"pearson_means", rounded(of_means.value())},
                       {"pearson_values", rounded(total.values.value())},
                       {"gradient", gradient.empty() ? Json() : rounded(gradient)}});
  }
  json["sentences"] = p.sentences;
  return json;
}

void Explanation::save_gates(const std::string& path) const {
  std::vector<safetensors::View> views;
  for (const Parts::Kept& kept : parts_->kept)
    views.emplace_back(kept.name, safetensors::FileDtype::f32, kept.shape, kept.values.data());
  safetensors::write(path, views, {{"format", "nmt-explain gates"}});
}

}  // namespace nmt::app
