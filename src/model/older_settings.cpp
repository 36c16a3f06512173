#include "model/older_settings.h"

#include "model/architecture.h"

namespace nmt {

void update_older_settings(ModelSpec& spec) {
  if (!spec.block.embedding_scale && architecture_of(spec).has_blocks())
    spec.block.embedding_scale = EmbeddingScale::none;
  if (spec.gate_init) return;
  spec.gate_init = GateInit::none;
  for (std::string* cell : {&spec.enc_cell, &spec.dec_cell}) {
    const std::string old = *cell;
#define NMT_RENAMED_UNIT(from, to) \
  if (old == from) *cell = to;
#include "units/renamed.def"
#undef NMT_RENAMED_UNIT
  }
}

}  // namespace nmt
