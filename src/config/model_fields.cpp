#include "config/fields.h"
#include "config/tasks/task_fields.h"
#include "core/number_text.h"

namespace nmt::config {
namespace {

// Options that determine the shapes and the meaning of the weights.
std::vector<Option> shape(ModelSpec& s) {
  const std::vector<std::string> ties{"tied-embeddings", "tied-embeddings-src",
                                      "tied-embeddings-all"};
  const std::string unit_rule =
      fmt::format("{}; {} for translation of fewer than {} pairs, except in blocks", s.enc_cell,
                  small_corpus_unit, grouped(small_corpus_pairs));
  return with_role(
      Role::shape,
      {
          Option("task", &s.task, "task of the model").meta("TASK"),
          Option("type", &s.type, "architecture; nmt-info --architectures describes them"),
          Option("context-sentences", &s.context_sentences,
                 "source sentences of the document in front of each sentence; 0: none")
              .range(0, max_context_sentences),
          Option("context-aware", &s.context_aware,
                 "two-unit layers that also read forward states or attention context"),
          Option("unit", {}, "recurrent unit of encoder and decoder")
              .alias({"cell"})
              .meta("UNIT")
              .spreads_to({"enc-cell", "dec-cell"}),
          Option("enc-cell", &s.enc_cell, "recurrent unit of the encoder")
              .meta("UNIT")
              .otherwise_chosen(unit_rule)
              .kept_by_resume({"unit", "enc-cell"}),
          Option("dec-cell", &s.dec_cell, "recurrent unit of the decoder")
              .meta("UNIT")
              .otherwise_chosen(unit_rule)
              .kept_by_resume({"unit", "dec-cell"}),
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other) Option(option, &s.member, help),
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION
          Option("positions", &s.positions,
                 "elstm1, elstm2: trained position vectors; 0: max-length, or 1 in language models")
              .range(0, 1000000)
              .kept_by_resume(),
          Option("state-heads", &s.state_heads,
                 "heads of matrix-state units; 0: 4, or fewer that divide the width")
              .range(0, 1024),
          Option("state-width", &s.state_width, "columns of the state of matrix-state units")
              .range(1, 64),
          Option("bias", &s.bias, "bias of the units' input projections").idle_when([&s] {
            return s.layer_normalization ? "layer-normalization has one" : "";
          }),
          Option("convolution", &s.convolution,
                 "taps of a causal convolution of the recurrent layers' inputs; 0: none")
              .range(0, 64),
          Option("groups", &s.groups, "groups (diagonal blocks) of the units' matrices")
              .range(1, 1024),
          Option("rearrange", &s.rearrange,
                 "interleave the groups' channels at the units' inputs; needs --groups")
              .idle_when([&s] { return s.groups == 1 ? "groups is 1" : ""; }),
          Option("dense-first-decoder-layer", &s.dense_first_decoder_layer,
                 "first decoder layer without groups (Gao et al. 2018, footnote 2)")
              .idle_when([&s] { return s.groups == 1 ? "groups is 1" : ""; }),
          Option("dim-emb", &s.dim_emb, "embedding size").range(1, 65536).chosen_by_default(),
          Option("dim-rnn", &s.dim_rnn, "size of the recurrent layers")
              .range(1, 65536)
              .chosen_by_default(),
          Option("dim-enc-upper", &s.dim_enc_upper,
                 "size of the encoder layers above the first; 0: dim-rnn")
              .range(0, 65536),
          Option("enc-depth", &s.enc_depth, "encoder layers").range(1, 64).chosen_by_default(),
          Option("dec-depth", &s.dec_depth, "decoder layers").range(1, 64).chosen_by_default(),
          Option("layer-normalization", &s.layer_normalization,
                 "layer normalization in units and between layers"),
          Option("attention", &s.attention,
                 "attention score; none: initial states are the only source information"),
          Option("heads", &s.heads, "attention heads").range(1, 1024),
          Option("alignment-head", &s.alignment_head,
                 "attention head that alignments read, from 1; 0: mean of all heads")
              .range(0, 1024)
              .otherwise_chosen("0, or 1 with guided alignment of several heads")
              .kept_by_resume(),
          Option("dim-attention", &s.dim_attention,
                 "size of the attention space; 0: width of the annotations")
              .range(0, 65536),
          Option("attention-projections", &s.attention_projections,
                 "value and output projections of the heads (Vaswani et al. 2017)"),
          Option("upper-context", &s.upper_context,
                 "attention context as input of the decoder layers above the first")
              .idle_when([&s] { return s.dec_depth == 1 ? "dec-depth is 1" : ""; }),
          Option("attention-query", &s.attention_query,
                 "attention query: the lower conditional unit, or a plain first layer")
              .kept_by_resume(),
          Option("tied-embeddings", &s.tied_embeddings,
                 "one matrix for target embedding and softmax")
              .otherwise_chosen("on")
              .idle_when([&s] {
                return s.tied_embeddings_all && !s.tied_embeddings ? "tied-embeddings-all is true"
                                                                   : "";
              })
              .kept_by_resume(ties),
          Option("tied-embeddings-src", &s.tied_embeddings_src,
                 "one matrix for source and target embedding; needs a joint vocabulary")
              .otherwise_chosen("off")
              .kept_by_resume(ties),
          Option("tied-embeddings-all", &s.tied_embeddings_all,
                 "one matrix for both embeddings and softmax; needs a joint vocabulary")
              .otherwise_chosen("on for translation with a joint vocabulary")
              .kept_by_resume(ties),
      });
}

std::vector<Option> block(BlockSpec& s) {
  const auto only_for = [&s](EncoderMixer wanted) {
    return [&s, wanted] {
      return s.encoder_mixer == wanted
                 ? ""
                 : fmt::format("encoder-mixer is {}", name_of(s.encoder_mixer));
    };
  };
  const auto without_layers = [&s] {
    return s.feed_forward == FeedForwardKind::none &&
                   s.decoder_feed_forward.value_or(s.feed_forward) == FeedForwardKind::none
               ? "feed-forward is none"
               : "";
  };
  return with_role(
      Role::shape,
      {
          Option("encoder-mixer", &s.encoder_mixer,
                 "blocks: encoder layers of units, or of self-attention"),
          Option("encoder-directions", &s.encoder_directions,
                 "blocks: directions of recurrent encoder layers")
              .idle_when(only_for(EncoderMixer::recurrent)),
          Option("encoder-heads", &s.encoder_heads, "blocks: heads of self-attention")
              .range(1, 1024)
              .idle_when(only_for(EncoderMixer::attention)),
          Option("encoder-positions", &s.encoder_positions, "blocks: positions of self-attention")
              .idle_when(only_for(EncoderMixer::attention)),
          Option("gate-branch", &s.gate_branch,
                 "blocks: activation of the branch that gates a unit's output"),
          Option("unit-projection", &s.unit_projection,
                 "blocks: multiply a unit's output by a matrix"),
          Option("feed-forward", &s.feed_forward, "blocks: feed-forward layers"),
          Option("decoder-feed-forward", &s.decoder_feed_forward,
                 "blocks: feed-forward layers of the decoder; auto: as feed-forward"),
          Option("feed-forward-width", &s.feed_forward_width,
                 "blocks: inner size of feed-forward layers; 0: 4 dim-emb")
              .range(0, 65536)
              .idle_when(without_layers),
          Option("embedding-scale", &s.embedding_scale,
                 "blocks: factor of embeddings; sqrt: square root of dim-emb")
              .kept_by_resume(),
      });
}

std::vector<Option> regularization(ModelSpec& s) {
  const auto dropout = [](const char* name, double* member, const char* help) {
    return Option(name, member, help).range(0, 0.99).chosen_by_default();
  };
  return {
      Option("dropout", {}, "default of dropout-emb, dropout-rnn and dropout-readout")
          .range(0, 0.99)
          .meta("P")
          .spreads_to({"dropout-emb", "dropout-rnn", "dropout-readout"}),
      dropout("dropout-emb", &s.dropout_emb, "dropout probability of embeddings"),
      dropout("dropout-rnn", &s.dropout_rnn, "dropout probability of layer outputs"),
      dropout("dropout-readout", &s.dropout_readout, "dropout probability before the softmax"),
      Option("dropout-state", &s.dropout_state,
             "dropout probability of the state in recurrent products, one mask per sentence")
          .range(0, 0.99),
      Option("dropout-variational", &s.dropout_variational,
             "one dropout mask per sentence for all steps (Gal & Ghahramani 2016)"),
  };
}

std::vector<Option> initialization(ModelSpec& s) {
  const auto unless_gates = [&s](GateInit wanted) {
    return [&s, wanted] {
      const GateInit is = s.gate_init.value_or(usual_gate_init);
      return is == wanted ? "" : fmt::format("gate-init is {}", name_of(is));
    };
  };
  return with_role(
      Role::initialization,
      {
          Option("init", &s.init,
                 "weight initialization; standard: orthogonal recurrent, normal embeddings, "
                 "glorot-uniform")
              .meta("NAME"),
          Option("init-scale", &s.init_scale,
                 "uniform: bound (0: 0.08); normal: deviation (0: 0.01); others: factor (0: 1)")
              .range(0, 1000),
          Option("gate-init", &s.gate_init, "start of the biases of forget and input gates")
              .kept_by_resume(),
          Option("gate-bias", &s.gate_bias, "constant: bias of forget gates; 0: the unit's own")
              .range(-20, 20)
              .idle_when(unless_gates(GateInit::constant)),
          Option("gate-steps", &s.gate_steps, "chrono: longest memory in tokens")
              .range(3, 1000000)
              .idle_when(unless_gates(GateInit::chrono)),
      });
}

std::vector<Option> list(ModelSpec& s) {
  return in_group("model",
                  joined({shape(s), block(s.block), regularization(s), initialization(s),
                          language_model_fields(s), tagging_fields(s), classification_fields(s)}));
}

}  // namespace

std::vector<Option> block_fields(BlockSpec& spec) {
  return with_defaults(spec, [](auto& s) { return block(s); });
}

std::vector<std::string> block_option_names() {
  BlockSpec spec;
  std::vector<std::string> names;
  for (const Option& option : block(spec)) names.push_back(option.name);
  return names;
}

std::vector<Option> fields(ModelSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

}  // namespace nmt::config
