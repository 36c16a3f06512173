#include "app/models/model_text.h"

#include "model/architecture.h"

#include <fmt/format.h>

namespace nmt::app {

std::string model_summary(const ModelSpec& spec) {
  if (spec.task == Task::language_model)
    return fmt::format("language model, {}, embeddings of {} and states of {}, {} layer{}",
                       spec.dec_cell, spec.dim_emb, spec.dim_rnn, spec.dec_depth,
                       spec.dec_depth == 1 ? "" : "s");
  const std::string encoder = encoder_attends(spec) ? "self-attention" : spec.enc_cell;
  const std::string cells = encoder == spec.dec_cell
                                ? spec.dec_cell
                                : encoder + " encoder and " + spec.dec_cell + " decoder";
  return fmt::format("{}, {}, embeddings of {} and states of {}, {}+{} layers", name_of(spec.type),
                     cells, spec.dim_emb, spec.dim_rnn, spec.enc_depth, spec.dec_depth);
}

}  // namespace nmt::app
