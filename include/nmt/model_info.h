#pragma once

#include "nmt/settings.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// Properties of the translation model in a directory.
struct ModelInfo {
  struct Part {
    std::string name;  ///< "embeddings", "encoder", "decoder", "softmax", ...
    std::int64_t parameters = 0;
  };
  std::string type;          ///< the architecture, as --type names it
  std::string encoder_unit;  ///< "lrn", "gru", ...; "": self-attention
  std::string decoder_unit;
  std::string precision;  ///< of the stored weights: "float32", "bfloat16" or "int8"
  int dim_emb = 0;        ///< width of embeddings
  int dim_rnn = 0;        ///< width of recurrent layers
  int enc_depth = 0;      ///< layers
  int dec_depth = 0;      ///< layers
  int source_vocabulary = 0, target_vocabulary = 0;  ///< pieces
  std::int64_t parameters = 0;                       ///< in total
  std::vector<Part> parts;
  Settings settings;  ///< all options that define the architecture
};

/// Reads a model directory without loading its weights. Thread-safe. Errors (usage): no model
/// there, or one of another task; (data): a damaged config.json.
ModelInfo model_info(const std::string& directory);

}  // namespace nmt
