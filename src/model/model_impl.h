#pragma once

#include "autograd/ops/attention.h"
#include "autograd/ops/plain.h"
#include "data/alignment/batch_links.h"
#include "model/decoder.h"
#include "model/encoder.h"
#include "model/model.h"
#include "tensor/copy.h"

#include <memory>
#include <span>

namespace nmt {

struct Model::Impl {
  Impl(const ModelSpec& the_spec, int source_size, int target_size, const Context& the_context,
       std::uint64_t seed, Weights weights);

  /// Embedded, encoded and projected source: symbols [S,B], mask [S,B], lengths [B].
  struct Encoded {
    SourceMemory memory;
    Var final_state;
  };
  Encoded encode(Tape& tape, const ops::Symbols& symbols, const Tensor& mask,
                 std::vector<std::int32_t> lengths) const;
  /// The same for sources without </s>, which may be many: for inference, in less memory.
  Encoded encode_in_parts(Tape& tape, std::span<const Ids> sources, std::int32_t bos,
                          std::int32_t eos) const;
  Var embed_target(Tape& tape, const ops::Symbols& symbols) const;
  Var embed(Tape& tape, Parameter& table, const ops::Symbols& symbols) const;
  /// The batch through encoder and decoder to the readouts of its real target tokens [R,E], and
  /// their targets i32 [R].
  struct Readouts {
    Var rows;
    Tensor targets;
  };
  Readouts run(Tape& tape, const Batch& batch,
               std::shared_ptr<const ops::AttentionGuide> guide = nullptr) const;

  /// The guide of the last decoder layer with attention; null without links. sums: as
  /// Trainable::accumulate_gradients().
  std::shared_ptr<const ops::AttentionGuide> guide(const LinkedRows& links, float weight,
                                                   const Tensor& sums) const;

  ModelSpec spec;
  int source_vocabulary, target_vocabulary;
  Context context;
  ParameterSet parameters;
  Parameter* source_table;
  Parameter* target_table;
  Parameter* output_table;
  Parameter* output_bias;
  std::unique_ptr<Encoder> encoder;
  std::unique_ptr<Decoder> decoder;
  bool frozen = false;
};

}  // namespace nmt
