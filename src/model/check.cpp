#include "model/check.h"

#include "config/fields.h"
#include "core/error.h"
#include "model/architecture.h"
#include "model/encoder.h"

#include <string>

#include <fmt/format.h>

namespace nmt {
namespace {

void positive(const char* name, int value) {
  if (value < 1) fail(ExitStatus::usage, "{}: {} is not a positive number", name, value);
}

// The settings of attention mean nothing without it.
void check_without_attention(const ModelSpec& spec) {
  if (!architecture_of(spec).without_attention)
    fail(ExitStatus::usage,
         "attention none: type {} reads the source through attention, additive or dot; allowed for "
         "type {}",
         name_of(spec.type),
         architecture_names([](const Architecture& a) { return a.without_attention; }));
  const kernels::Unit& unit = *unit_settings(spec, spec.dec_cell).unit;
  if (unit.matrix_state)
    fail(ExitStatus::usage,
         "attention none: unit {} of the decoder starts from a zero matrix state, so the source "
         "would not enter; use another dec-cell or attention",
         unit.name);
  if (spec.attention_query)
    fail(ExitStatus::usage, "attention-query: {} has no effect with attention none; use auto",
         name_of(*spec.attention_query));
  if (spec.heads != 1)
    fail(ExitStatus::usage, "heads: {} has no effect with attention none; use 1", spec.heads);
  if (!spec.upper_context)
    fail(ExitStatus::usage, "upper-context: false has no effect with attention none; use true");
  if (spec.attention_projections)
    fail(ExitStatus::usage,
         "attention-projections: true has no effect with attention none; use false");
  if (spec.alignment_head != 0)
    fail(ExitStatus::usage, "alignment-head: {} has no effect with attention none; use 0",
         spec.alignment_head);
  if (spec.dim_attention != 0)
    fail(ExitStatus::usage, "dim-attention: {} has no effect with attention none; use 0",
         spec.dim_attention);
}

void check_layers(const char* name, int value, const LayerLimits& limits, const ModelSpec& spec) {
  if (value >= limits.min && value <= limits.max) return;
  const std::string allowed = limits.min == limits.max ? fmt::format("exactly {}", limits.min)
                              : limits.max == max_layers
                                  ? fmt::format("at least {}", limits.min)
                                  : fmt::format("from {} to {}", limits.min, limits.max);
  fail(ExitStatus::usage, "{}: {} layers, but type {} has {}", name, value, name_of(spec.type),
       allowed);
}

// Options of blocks that are set mean nothing for other architectures.
void check_without_blocks(const ModelSpec& spec) {
  BlockSpec block = spec.block;
  for (const config::Option& option : config::block_fields(block))
    if (config::values(option) != option.initial)
      fail(ExitStatus::usage, "{}: {} is not supported by type {}; supported by type {}",
           option.name, config::joined_values(option), name_of(spec.type),
           architecture_names([](const Architecture& a) { return a.has_blocks(); }));
}

void check_blocks(const ModelSpec& spec) {
  const std::string type(name_of(spec.type));
  if (spec.attention_query == AttentionQuery::recurrent)
    fail(ExitStatus::usage, "attention-query: recurrent is not supported by type {}; use auto",
         type);
  if (spec.attention_projections)
    fail(ExitStatus::usage, "attention-projections: type {} always has them; use false", type);
  if (!spec.upper_context)
    fail(ExitStatus::usage, "upper-context: every decoder layer of type {} reads the context",
         type);
  if (spec.dim_enc_upper > 0)
    fail(ExitStatus::usage, "dim-enc-upper: all encoder layers of type {} have width dim-rnn",
         type);
  BlockSpec block = spec.block;
  const bool attends = block.encoder_mixer == EncoderMixer::attention;
  const std::vector<std::string> idle =
      attends ? std::vector<std::string>{"encoder-directions"}
              : std::vector<std::string>{"encoder-heads", "encoder-positions"};
  for (const config::Option& option : config::only(idle, config::block_fields(block)))
    if (config::values(option) != option.initial)
      fail(ExitStatus::usage, "{}: {} has no effect with encoder-mixer {}; use {}", option.name,
           config::joined_values(option), name_of(block.encoder_mixer), option.initial.front());
  if (!attends && block.encoder_directions == EncoderDirections::joined && !block.unit_projection)
    fail(ExitStatus::usage,
         "unit-projection: encoder-directions joined needs it, since the encoder's states are then "
         "twice as wide as the decoder's");
}

}  // namespace

void check_model(const ModelSpec& spec) {
  positive("dim-emb", spec.dim_emb);
  positive("dim-rnn", spec.dim_rnn);
  positive("enc-depth", spec.enc_depth);
  positive("dec-depth", spec.dec_depth);
  positive("heads", spec.heads);
  const Architecture& architecture = architecture_of(spec);
  if (spec.attention == AttentionType::none) check_without_attention(spec);
  if (spec.alignment_head < 0 || spec.alignment_head > spec.heads)
    fail(ExitStatus::usage, "alignment-head: {}, but heads is {}; expected 0 (mean) to {}",
         spec.alignment_head, spec.heads, spec.heads);
  check_layers("enc-depth", spec.enc_depth, architecture.encoder_layers, spec);
  check_layers("dec-depth", spec.dec_depth, architecture.decoder_layers, spec);
  architecture.has_blocks() ? check_blocks(spec) : check_without_blocks(spec);
  if (spec.context_aware && !spec.upper_context)
    fail(ExitStatus::usage,
         "upper-context: context-aware decoder layers read the context with their second unit");
  if (spec.dim_enc_upper < 0)
    fail(ExitStatus::usage, "dim-enc-upper: {} is below 0", spec.dim_enc_upper);
  if (spec.dim_enc_upper > 0 && spec.enc_depth == 1)
    fail(ExitStatus::usage, "dim-enc-upper: {}, but enc-depth 1 has no layers above the first",
         spec.dim_enc_upper);
  if (spec.context_aware && !architecture.context_aware)
    fail(ExitStatus::usage, "context-aware: allowed for types {}, not {}",
         architecture_names([](const Architecture& a) { return a.context_aware; }),
         name_of(spec.type));
  if (architecture.readout == ReadoutKind::none && architecture.output_width(spec) != spec.dim_emb)
    fail(ExitStatus::usage,
         "type {}: dim-emb {} must equal dim-rnn {}, since the softmax reads the top layer itself",
         name_of(spec.type), spec.dim_emb, spec.dim_rnn);
}

bool queries_recurrently(const ModelSpec& spec) {
  return spec.attention_query ? *spec.attention_query == AttentionQuery::recurrent
                              : architecture_of(spec).conditional_by_default &&
                                    !unit_settings(spec, spec.dec_cell).unit->matrix_state;
}

}  // namespace nmt
