#pragma once

// Models for searches on the device, and options of these.

#include "model/model_scorer.h"
#include "search/beam/beam_search.h"
#include "tests/device/machine.h"

#include <memory>
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
    }
  }
  void freeze() {
    for (auto& model : models) {
      model->freeze();
      scorers.push_back(std::make_unique<ModelScorer>(*model, bos, eos));
    }
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
