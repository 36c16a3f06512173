#pragma once

// Models for searches on the device, and options of these.

#include "model/decoding/model_scorer.h"
#include "search/beam/beam_search.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt::test {

/// Models of one description on one device, with weights large enough that probabilities differ.
struct Models {
  Models(DeviceKind kind, const std::string& text, int count = 1,
         Precision precision = Precision::float32)
      : machine(kind, text, precision) {
    for (int i = 0; i < count; ++i) {
      ModelSpec spec = small_model(text);
      spec.init = Initialization::normal;
      spec.init_scale = 0.5;
      models.push_back(
          std::make_unique<Model>(spec, source_size, target_size, machine.context, 11 + i));
      for (Parameter& parameter : models.back()->parameters().all())
        if (parameter.name.ends_with("positions")) set_positions(parameter);
    }
  }
  void freeze() {
    for (auto& model : models) {
      model->freeze();
      scorers.push_back(std::make_unique<ModelScorer>(*model, bos, eos));
    }
  }
  // Vectors of positions are all 1 at first; here they differ.
  void set_positions(const Parameter& parameter) {
    std::vector<float> values(static_cast<std::size_t>(parameter.value.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          0.3f + 0.2f * static_cast<float>(i / static_cast<std::size_t>(parameter.value.width()));
    upload(machine.context, std::span<const float>(values), parameter.value);
  }
  Machine machine;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<ModelScorer>> scorers;
};

/// N-best search with outputs of at most two tokens more than the source has.
inline SearchOptions options_for(Models& models, int beam) {
  SearchOptions options;
  options.cpu = models.machine.context.cpu;
  options.beam_size = beam;
  options.max_length_factor = 1;
  options.max_length_offset = 2;
  options.n_best = true;
  options.ranking.length_penalty = 0.6;
  options.unk = unk;
  options.bos = bos;
  options.eos = eos;
  return options;
}

}  // namespace nmt::test
