#pragma once

#include "app/benchmark/bench.h"
#include "config/specs.h"
#include "data/batch.h"
#include "model/model.h"

#include <string>
#include <vector>

namespace nmt::app::bench {

/// A model of the shipped configs and the batch for timing its training.
struct ModelCase {
  std::string name;
  ModelSpec spec;
  int vocabulary = 0;
  int sentences = 0,
      steps = 0;  ///< batch size: sentences, and tokens per sentence on each side, </s> included
};

/// configs/multi30k.yaml with a unit: deep, width 256, 2+2 layers.
ModelCase small_model(const std::string& unit, AttentionQuery query);
/// configs/wmt14-en-de-lrn.yaml with a unit: deep, context-aware, width 1024, 6+6 layers.
ModelCase deep_model(const std::string& unit);
/// configs/wmt14-en-de-atr.yaml with a unit: rnnsearch, width 1000.
ModelCase wide_model(const std::string& unit);
/// configs/gnmt.yaml.
ModelCase gnmt_model(const std::string& unit);
/// The model of scripts/bench/pytorch/pytorch_model.py: deep, GRU with `reset: after` and biases,
/// no layer normalization.
ModelCase gru_model(int vocabulary, int width, int layers, int sentences, int steps);
/// A tiny model for tests.
ModelCase tiny_model(const std::string& unit);

/// Random sentences of full length.
Batch random_batch(const ModelCase& model);

/// FLOPs of the matrix products in one forward pass over the batch, without attention scores; a
/// training pass has three times as many.
double forward_flops(Model& model, const Batch& batch);

/// Fails the row unless the gradients of a 16-channel version of the model, without dropout, match
/// central differences of its loss, on the CPU in float32.
void check_gradients(Case& c, const ModelCase& model);

/// The context with products in bfloat16 or float32.
Context with_bfloat16(Context context, bool bfloat16);

}  // namespace nmt::app::bench
