#pragma once

#include "model/decoder.h"
#include "model/step_scorer.h"

#include <functional>
#include <memory>

namespace nmt {

/// What a step of a search reads of a model, which must outlive the search.
struct DecodingParts {
  const Decoder& decoder;
  std::function<Var(Tape& tape, const Tensor& ids)> embed;  ///< of target symbols
  Parameter& table;                                         ///< [V,E] of the output layer
  Parameter& bias;                                          ///< [V]
  int alignment_head;  ///< head whose attention is the alignment; 0: the mean of all
};

/// A batch of sources under search: the memory of the encoder, and the states of the live
/// hypotheses, at first `state`, one per source.
std::unique_ptr<Decoding> start_decoding(const Context& context, const DecodingParts& parts,
                                         SourceMemory memory, DecoderState state,
                                         bool want_attention);

}  // namespace nmt
