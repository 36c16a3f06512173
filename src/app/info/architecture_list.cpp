#include "app/info/architecture_list.h"

#include "core/nlohmann.h"
#include "model/architecture.h"

#include <fmt/format.h>

namespace nmt::app {
namespace {

std::string layers_of(const LayerLimits& limits) {
  if (limits.max == max_layers) return fmt::format("at least {}", limits.min);
  return limits.min == limits.max ? fmt::format("{}", limits.min)
                                  : fmt::format("{} to {}", limits.min, limits.max);
}

std::string residual_of(const Architecture& a) {
  switch (a.residual) {
    case ResidualKind::none: return "none";
    case ResidualKind::projected: return "LN(x + hW) after every layer";
    case ResidualKind::pre_norm: return "x + f(LN(x)) around every part of a layer";
    case ResidualKind::sum: break;
  }
  return fmt::format("h + x from layer {} on", a.first_sum + 1);
}

const char* initial_state_of(const Architecture& a) {
  switch (a.initial_state) {
    case InitialState::tanh: return "tanh of a linear layer of the final encoder state";
    case InitialState::linear: return "linear layer of the final encoder state";
    case InitialState::zero: break;
  }
  return "zero";
}

const char* readout_of(const Architecture& a) {
  switch (a.readout) {
    case ReadoutKind::states_context_input: return "tanh(W [h; c; y'])";
    case ReadoutKind::output_context: return "tanh(W [x; c])";
    case ReadoutKind::none: break;
  }
  return "none: the softmax reads the top layer";
}

}  // namespace

std::string architectures_text() {
  std::string out;
  for (const Architecture& a : architectures())
    out += fmt::format(
        "{}: {} ({})\n"
        "  encoder layers   {}\n  decoder layers   {}\n  residuals        {}\n"
        "  initial states   {}\n  readout          {}\n  attention-query  auto: {}\n"
        "  attention none   {}\n  context-aware    {}\n",
        a.name(), a.description, a.source, layers_of(a.encoder_layers), layers_of(a.decoder_layers),
        residual_of(a), initial_state_of(a), readout_of(a),
        a.conditional_by_default ? "recurrent" : "first-layer",
        a.without_attention ? "allowed" : "not allowed",
        a.context_aware ? "allowed" : "not allowed");
  return out;
}

std::string architectures_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Architecture& a : architectures())
    list.push_back({{"name", a.name()},
                    {"description", a.description},
                    {"source", a.source},
                    {"encoder-layers", layers_of(a.encoder_layers)},
                    {"decoder-layers", layers_of(a.decoder_layers)},
                    {"residuals", residual_of(a)},
                    {"initial-states", initial_state_of(a)},
                    {"readout", readout_of(a)},
                    {"conditional-by-default", a.conditional_by_default},
                    {"attention-none", a.without_attention},
                    {"context-aware", a.context_aware}});
  return list.dump(2) + "\n";
}

}  // namespace nmt::app
