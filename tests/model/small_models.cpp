#include "tests/model/small_models.h"

#include "kernels/recurrent/matrix_state.h"
#include "model/architecture.h"
#include "nn/unit_registry.h"

#include <algorithm>
#include <tuple>

namespace nmt::test {

std::vector<Ids> random_sentences(Rng& rng, int n, int vocabulary, int longest) {
  std::vector<Ids> out(n);
  for (Ids& ids : out) {
    ids.resize(1 + rng.below(longest));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
  }
  return out;
}

Batch batch_of(const std::vector<Ids>& sources, const std::vector<Ids>& targets) {
  std::vector<const Ids*> s, t;
  for (const Ids& ids : sources) s.push_back(&ids);
  for (const Ids& ids : targets) t.push_back(&ids);
  return make_batch(s, t, bos, eos);
}

ModelSpec small(const std::string& type, const std::string& unit) {
  ModelSpec spec;
  spec.type = parse_enum<ModelType>(type, "type");
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = 12;
  spec.dim_rnn = 10;
  const LayerLimits layers = architecture_of(spec).common_layers();
  spec.enc_depth = spec.dec_depth = std::clamp(2, layers.min, layers.max);
  spec.positions = 4;
  spec.state_heads = 2;
  spec.state_width = 3;
  return spec;
}

std::vector<ModelSpec> specs() {
  std::vector<ModelSpec> all;
  for (const Architecture& architecture : architectures()) {
    ModelSpec spec = small(std::string(architecture.name()), "gru");
    if (architecture.readout == ReadoutKind::none) spec.dim_emb = spec.dim_rnn;
    all.push_back(spec);
  }
  for (const char* type : {"rnnsearch", "deep"})
    for (const char* unit : {"lrn", "olrn", "gru", "lstm"})
      for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer}) {
        ModelSpec spec = small(type, unit);
        spec.attention_query = query;
        all.push_back(spec);
      }
  for (const char* unit : {"lrn", "lstm"}) {
    for (const char* type : {"rnnsearch", "deep"}) {
      ModelSpec spec = small(type, unit);
      spec.context_aware = true;
      all.push_back(spec);
    }
    for (const AttentionType attention : {AttentionType::none, AttentionType::additive}) {
      ModelSpec spec = small("seq2seq", unit);
      spec.attention = attention;
      spec.enc_depth = 3;
      all.push_back(spec);
    }
    ModelSpec spec = small("gnmt", unit);
    spec.dim_emb = spec.dim_rnn;
    spec.enc_depth = spec.dec_depth = 3;
    all.push_back(spec);
    spec.attention_query = AttentionQuery::recurrent;
    spec.layer_normalization = false;
    all.push_back(spec);
  }
  for (const auto& [type, unit, rearrange] : {std::tuple{"rnnsearch", "gru", true},
                                              {"rnnsearch", "lrn", true},
                                              {"deep", "lstm", false},
                                              {"deep", "gru", true},
                                              {"deep", "olrn", true}}) {
    ModelSpec spec = small(type, unit);
    spec.groups = 2;
    spec.rearrange = rearrange;
    spec.context_aware = rearrange && spec.enc_cell == "gru";
    all.push_back(spec);
  }
  for (const std::string& unit : unit_names()) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const ModelSpec& other) { return other.dec_cell == unit; }))
      continue;
    all.push_back(small("deep", unit));
    if (unit != "ran" && unit != "elstm1") continue;
    all.push_back(small("rnnsearch", unit));
    all.back().attention_query = AttentionQuery::first_layer;
    all.push_back(small("deep", unit));
    all.back().context_aware = true;
  }
  for (const kernels::Unit& unit : kernels::matrix_state_units())
    for (const Architecture& architecture : architectures()) {
      const std::string type(architecture.name());
      if (type == "deep") continue;  // above
      all.push_back(small(type, unit.name));
      if (architecture.readout == ReadoutKind::none) all.back().dim_emb = all.back().dim_rnn;
    }
  for (const char* unit :
       {"ran", "elstm1"}) {  // an output that follows from the state; vectors of each position
    all.push_back(small("deep", unit));
    all.back().context_aware = true;
    all.push_back(small("gnmt", unit));
    all.back().dim_emb = all.back().dim_rnn;
  }
  for (const auto& [type, unit, kind] : {std::tuple{"deep", "lrn", GateInit::chrono},
                                         {"rnnsearch", "atr", GateInit::constant},
                                         {"seq2seq", "ssru", GateInit::chrono}}) {
    all.push_back(small(type, unit));
    all.back().layer_normalization = false;
    all.back().context_aware = all.back().type == ModelType::deep;
    all.back().gate_init = kind;
  }
  // Starts that depend on the unit and the layer; convolutions, which search continues.
  for (const auto& [type, unit, taps] : {std::tuple{"rnnsearch", "slstm", 0},
                                         {"seq2seq", "slstm", 2},
                                         {"gnmt", "slstm", 3},
                                         {"block", "slstm", 4},
                                         {"rnnsearch", "hgrn", 3},
                                         {"seq2seq", "hgrn", 0},
                                         {"gnmt", "hgrn", 0},
                                         {"block", "hgrn", 2},
                                         {"block", "mamba", 4},
                                         {"deep", "srn", 2},
                                         {"deep", "lrn", 3}}) {
    all.push_back(small(type, unit));
    ModelSpec& added = all.back();
    added.convolution = taps;
    if (added.type == ModelType::gnmt) added.dim_emb = added.dim_rnn;
    if (added.type == ModelType::seq2seq) added.attention = AttentionType::none;
    if (added.type == ModelType::rnnsearch) added.groups = 2;
    added.context_aware = added.dec_cell == "lrn";
  }
  ModelSpec spec = small("deep", "gru");
  spec.context_aware = true;
  spec.attention_query = AttentionQuery::first_layer;
  all.push_back(spec);
  spec = small("seq2seq", "gru");
  spec.attention_query = AttentionQuery::first_layer;
  all.push_back(spec);
  spec.attention = AttentionType::none;
  spec.attention_query = std::nullopt;
  spec.enc_depth = spec.dec_depth = 1;
  all.push_back(spec);
  spec = small("deep", "gru");
  spec.layer_normalization = false;
  spec.bias = true;
  spec.attention = AttentionType::dot;
  spec.heads = 2;
  spec.reset = ResetPlace::after;
  spec.tied_embeddings = false;
  all.push_back(spec);
  spec.attention_query = AttentionQuery::first_layer;
  spec.enc_depth = 1;
  spec.dec_depth = 3;
  all.push_back(spec);
  for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer})
    for (const AttentionType kind : {AttentionType::additive, AttentionType::dot}) {
      spec = small("deep", kind == AttentionType::dot ? "gru" : "lrn");
      spec.attention = kind;
      spec.attention_query = query;
      spec.attention_projections = true;
      spec.heads = 2;
      spec.dim_attention = 8;
      all.push_back(spec);
    }
  // As in the GROUP paper: a dense first decoder layer, wider upper encoder layers.
  spec = small("seq2seq", "lstm");
  spec.groups = 2;
  spec.rearrange = true;
  spec.dense_first_decoder_layer = true;
  spec.enc_depth = 3;
  spec.dim_enc_upper = 14;
  all.push_back(spec);
  spec.upper_context = false;
  all.push_back(spec);
  for (const char* unit : {"ssru", "lstm"})
    for (const EncoderMixer mixer : {EncoderMixer::recurrent, EncoderMixer::attention}) {
      spec = small("block", unit);
      spec.block.encoder_mixer = mixer;
      if (mixer == EncoderMixer::attention)
        spec.block.encoder_heads = 3;
      else
        spec.block.encoder_directions = EncoderDirections::joined;
      if (spec.dec_cell == "lstm") {
        spec.heads = 2;
        spec.attention = AttentionType::dot;
        spec.dim_attention = 8;
        spec.block.gate_branch = GateBranch::none;
        spec.block.feed_forward = FeedForwardKind::relu;
        spec.block.decoder_feed_forward = FeedForwardKind::none;
      } else {
        spec.layer_normalization = false;
        spec.block.gate_branch = GateBranch::silu;
        spec.block.feed_forward_width = 9;
        spec.block.embedding_scale = EmbeddingScale::sqrt;
      }
      all.push_back(spec);
    }
  spec.enc_cell = spec.dec_cell = "elstm1";  // vectors of each position
  all.push_back(spec);
  spec = small("block", "ssru");
  spec.dim_rnn = spec.dim_emb;
  spec.block.unit_projection = false;
  spec.block.gate_branch = GateBranch::none;
  spec.block.feed_forward = FeedForwardKind::relu;
  all.push_back(spec);
  spec = small("deep", "gru");
  spec.groups = 2;
  spec.rearrange = true;
  spec.dense_first_decoder_layer = true;
  spec.attention_projections = true;
  spec.dim_enc_upper = 6;
  all.push_back(spec);
  return all;
}

std::string text_of(const ModelSpec& s) {
  return std::string(name_of(s.type)) + (s.context_aware ? " context-aware " : " ") + s.enc_cell +
         " " + (s.attention_query ? std::string(name_of(*s.attention_query)) : "auto") + " " +
         std::string(name_of(s.attention)) + (s.layer_normalization ? " normalized" : "") +
         (s.attention_projections ? " projected" : "") + (s.groups > 1 ? " groups" : "") +
         (s.rearrange ? " rearranged" : "") +
         (architecture_of(s).has_blocks()
              ? fmt::format(" {} {}{}", name_of(s.block.encoder_mixer),
                            name_of(s.block.feed_forward),
                            s.block.unit_projection ? "" : " unprojected")
              : "") +
         (s.dense_first_decoder_layer ? " first dense" : "") +
         (s.convolution > 0 ? " convolved" : "");
}

}  // namespace nmt::test
