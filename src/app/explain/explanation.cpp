#include "app/explain/explanation.h"

#include "app/explain/gate_memory.h"
#include "app/model_text.h"
#include "core/error.h"
#include "core/nlohmann.h"
#include "data/batch.h"
#include "tensor/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

  void describe(const Probe& probe);
  std::optional<std::vector<double>> gradient_of(const Probe& probe, std::size_t which) const;
  Json unit(const Probe& probe, std::size_t which, std::int64_t line);
};

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

Json Explanation::Parts::unit(const Probe& probe, std::size_t which, std::int64_t line) {
  const GateRecord& record = probe.units[which];
  if (!record.input) return {};
  const std::int64_t n = record.input.shape()[0], h = record.gates;
  const std::span<const float> input(record.input.f32(), static_cast<std::size_t>(n * h)),
      forget(record.forget.f32(), static_cast<std::size_t>(n * h));
  const std::vector<double> i_means = channel_means(n, h, input),
                            f_means = channel_means(n, h, forget);
  Correlation of_means, of_values;
  UnitTotals& total = totals[which];
  total.input.resize(std::max(total.input.size(), i_means.size()));
  total.forget.resize(total.input.size());
  total.sentences.resize(total.input.size());
  for (std::size_t t = 0; t < i_means.size(); ++t) {
    of_means.add(i_means[t], f_means[t]);
    total.input[t] += i_means[t];
    total.forget[t] += f_means[t];
    ++total.sentences[t];
  }
  for (std::size_t j = 0; j < input.size(); ++j) {
    of_values.add(input[j], forget[j]);
    total.values.add(input[j], forget[j]);
  }

  const bool reverse = record.reverse;
  const std::vector<float> i = in_reading_order(record.input, h, reverse),
                           f = in_reading_order(record.forget, h, reverse);
  GatedMemory memory = gated_memory(n, h, i, f);
  if (!units[which]["partner"].is_null()) {
    const GateRecord& partner = probe.units[units[which]["partner"].get<std::size_t>()];
    const std::vector<float> other = in_reading_order(partner.forget, h, reverse);
    memory = record.lower >= 0 ? gated_memory_higher(n, h, i, f, other)
                               : gated_memory_lower(n, h, i, f, other);
  }
  const std::vector<std::vector<double>> weights = memory_weights(memory);
  const std::optional<std::vector<double>> gradient = gradient_of(probe, which);
  if (gradient) {
    total.gradient.resize(std::max(total.gradient.size(), gradient->size()));
    total.gradient_sentences.resize(total.gradient.size());
    for (std::size_t d = 0; d < gradient->size(); ++d) {
      total.gradient[d] += (*gradient)[d];
      ++total.gradient_sentences[d];
    }
  }
  Json curves = Json::array();
  for (std::int64_t k = 0; k < n; ++k)
    curves.push_back(rounded(weights[static_cast<std::size_t>(reverse ? n - 1 - k : k)]));
  if (keep_gates)
    for (const auto& [name, values] : {std::pair{"input", input}, std::pair{"forget", forget},
                                       std::pair{"slope", span_of(record.slope)}})
      if (!values.empty())
        kept.push_back({fmt::format("{}.{}.{}", line, record.name, name),
                        {n, h},
                        {values.begin(), values.end()}});
  return Json{{"input", rounded(i_means)},
              {"forget", rounded(f_means)},
              {"pearson_means", rounded(of_means.value())},
              {"pearson_values", rounded(of_values.value())},
              {"gradient", gradient ? rounded(*gradient) : Json()},
              {"memory", std::move(curves)},
              {"strongest", strongest(weights, reverse)}};
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
  const SourceIds encoded = encoder.encode(lines, contexts, *options.search.cpu.pool).at(0).source;
  std::vector<std::int32_t> source = encoded.ids, target = output.ids;
  Json sentence{{"line", number},
                {"source", line},
                {"translation", output.text},
                {"log_probability", rounded(output.log_prob)},
                {"score", rounded(output.score)}};
  if (options.context_sentences > 0) {
    sentence["context"] = context;
    sentence["context_pieces"] = encoded.context;
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
