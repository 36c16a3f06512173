#include "train/resume.h"

#include "core/error.h"
#include "core/log.h"

#include <algorithm>
#include <array>

namespace nmt::train {
namespace {

constexpr std::array shapes = {"type",
                               "context-aware",
                               "unit",
                               "enc-cell",
                               "dec-cell",
                               "reset",
                               "activation",
                               "forget-gate",
                               "input-gate",
                               "bias",
                               "groups",
                               "rearrange",
                               "input",
                               "positions",
                               "dim-emb",
                               "dim-rnn",
                               "enc-depth",
                               "dec-depth",
                               "layer-normalization",
                               "attention",
                               "heads",
                               "dim-attention",
                               "attention-query",
                               "tied-embeddings",
                               "tied-embeddings-src",
                               "tied-embeddings-all"};
constexpr std::array drawn = {"init", "init-scale"};
constexpr std::array vocabularies = {"vocabs", "dim-vocabs", "joint-vocab",
                                     "sentencepiece-max-lines"};
constexpr std::array held_out = {"valid-lines", "seed"};  // where there are no valid-sets

template <class Names>
bool among(const Names& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
}

}  // namespace

std::string refusal(const ChangedSetting& change, UpdateRule optimizer, bool holds_out) {
  if (among(shapes, change.name)) return "the shapes of the weights depend on it";
  if (among(drawn, change.name)) return "the weights were initialized with it";
  if (among(vocabularies, change.name)) return "the embeddings depend on the vocabulary";
  if (change.name == "valid-sets" && change.now == "none")
    return "pairs held out now would have been trained on";
  if (holds_out && among(held_out, change.name)) return "it decides which pairs are held out";
  // adam and adamw keep the same moments.
  const auto is_adam = [](const std::string& name) {
    const auto rule = find_enum<UpdateRule>(name);
    return rule == UpdateRule::adam || rule == UpdateRule::adamw;
  };
  if (change.name == "optimizer" && !(is_adam(change.before) && is_adam(change.now)))
    return "the optimizer states are incompatible";
  const auto is_off = [](const std::string& momentum) {
    return momentum == "none" || momentum == "0";
  };
  if (change.name == "optimizer-params" && optimizer == UpdateRule::sgd &&
      is_off(change.before) != is_off(change.now))
    return "momentum cannot be enabled or disabled during a training";
  if (change.name == "exponential-smoothing" && (change.before == "0") != (change.now == "0"))
    return "averaging cannot be enabled or disabled during a training";
  return "";
}

void announce_changes(const std::vector<ChangedSetting>& changes, const TrainSpec& spec,
                      const DataSpec& data) {
  std::string refused;
  for (const ChangedSetting& change : changes) {
    const std::string why = refusal(change, spec.optimizer, data.valid_sets.empty());
    if (why.empty()) {
      log::info("override {}: {} -> {}", change.name, change.before, change.now);
    } else {
      refused += fmt::format("{}{} is {} there, not {} ({})", refused.empty() ? "" : "; ",
                             change.name, change.before, change.now, why);
    }
  }
  if (!refused.empty())
    fail(ExitStatus::usage,
         "{}: cannot go on with other settings: {}; take these back, or start anew with "
         "--no-reload or another --model",
         spec.model, refused);
}

}  // namespace nmt::train
