#include "train/training_state.h"

#include "core/error.h"
#include "core/nlohmann.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace nmt::train {
namespace {

// One list of the fields serves both directions.
template <class State, class Field>
void fields(State& s, Field&& field) {
  field("updates", s.progress.updates);
  field("epochs", s.progress.epochs);
  field("labels", s.progress.labels);
  field("batches", s.batches);
  field("optimizer_steps", s.optimizer_steps);
  field("seconds", s.seconds);
  field("stall_decays", s.stalls.decays);
  field("first_stall_epoch", s.stalls.first_epoch);
  field("recoveries", s.stalls.recoveries);
  field("stalled", s.stalled);
  field("best_update", s.best_update);
  field("best_metric", s.best_metric);
  field("validated_update", s.validated_update);
  field("validation_due", s.validation_due);
  field("bad_updates", s.bad_updates);
  field("shown_smoothed", s.shown.smoothed);
  field("shown_cross_entropy", s.shown.cross_entropy);
  field("shown_norms", s.shown.norms);
  field("shown_updates", s.shown.updates);
  field("shown_tokens", s.shown.tokens);
  field("position", s.position);
  field("corpus", s.batching_hash);
  field("development", s.development);
  field("settings", s.settings);
}

// Reads a stored field. JSON has neither infinity nor NaN: a training that diverges stores null for
// them.
template <class Value>
void read(const nlohmann::json& stored, Value& value) {
  if constexpr (std::is_same_v<Value, double>)
    if (stored.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
  stored.get_to(value);
}

// The hash of the text, with which that of the batching begins.
std::string text_of(const std::string& batching_hash) {
  return batching_hash.substr(0, batching_hash.find(' '));
}

}  // namespace

double TrainingState::epochs_kept(const std::string& now) const {
  return batching_hash == now                     ? progress.epochs
         : text_of(batching_hash) == text_of(now) ? std::floor(progress.epochs)
                                                  : 0;
}

void TrainingState::update_text_hash(const TextIdentity& text) {
  if (!text.v0_2.empty() && text_of(batching_hash) == text.v0_2)
    batching_hash.replace(0, text.v0_2.size(), text.current);
}

std::string TrainingState::to_json() const {
  nlohmann::ordered_json json;
  fields(*this, [&](const char* name, const auto& value) { json[name] = value; });
  if (epochs_before > 0) json["epochs_before"] = epochs_before;
  if (best) json["best"] = *best;
  json["best_due"] = best_due ? nlohmann::ordered_json(*best_due) : nullptr;
  if (average_from >= 0) json["average_from"] = average_from;
  if (shown.alignment > 0) json["shown_alignment"] = shown.alignment;
  if (!alignments.empty()) json["alignments"] = alignments;
  if (!relative_after.empty()) json["relative_after"] = relative_after;
  if (validation_seconds > 0) json["validation_seconds"] = validation_seconds;
  json["history"] = history;
  return json.dump(1) + "\n";
}

TrainingState TrainingState::from_json(const std::string& text, const std::string& name) {
  TrainingState state;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.contains("average-of"))
      fail(ExitStatus::usage,
           "model: {} has averaged weights made by nmt-average; resume the original training",
           name);
    if (json.contains("converted-to"))
      fail(ExitStatus::usage, "model: {} was made by nmt-convert; resume the original training",
           name);
    fields(state, [&](const char* key, auto& value) { read(json.at(key), value); });
    if (json.contains("epochs_before")) json.at("epochs_before").get_to(state.epochs_before);
    if (json.contains("validation_seconds"))
      json.at("validation_seconds").get_to(state.validation_seconds);
    if (json.contains("best") && !json.at("best").is_null())
      state.best = json.at("best").get<double>();
    if (!json.contains("best_due"))
      state.best_due = state.best;  // of an earlier version
    else if (!json.at("best_due").is_null())
      state.best_due = json.at("best_due").get<double>();
    if (json.contains("average_from"))
      state.average_from = json.at("average_from").get<std::int64_t>();
    if (json.contains("shown_alignment")) read(json.at("shown_alignment"), state.shown.alignment);
    if (json.contains("alignments")) state.alignments = json.at("alignments").get<std::string>();
    if (json.contains("relative_after"))
      state.relative_after = json.at("relative_after").get<std::string>();
    if (json.contains("history")) state.history = json.at("history").get<std::int64_t>();
  } catch (const nlohmann::json::exception& error) {
    fail(ExitStatus::data, "{}: not a training state: {}", name, error.what());
  }
  return state;
}

}  // namespace nmt::train
