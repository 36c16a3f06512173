#include "config/fields.h"

namespace nmt::config {
namespace {

std::vector<Option> list(ModelSpec& s) {
  const auto dropout = [](const char* name, double* member, const char* where) {
    return Option(name, member, fmt::format("share of values dropped {} in training", where))
        .range(0, 0.99)
        .chosen_by_default();
  };
  return in_group(
      "model",
      {
          Option("type", &s.type, "architecture; nmt-info --architectures describes them"),
          Option("context-aware", &s.context_aware,
                 "conditional units over the encoder's forward states and over the context"),
          Option("unit", {}, "recurrent unit of all layers; --enc-cell and --dec-cell win over it")
              .alias({"cell"})
              .meta("UNIT")
              .spreads_to({"enc-cell", "dec-cell"}),
          Option("enc-cell", &s.enc_cell, "recurrent unit of the encoder").meta("UNIT"),
          Option("dec-cell", &s.dec_cell, "recurrent unit of the decoder").meta("UNIT"),
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other) Option(option, &s.member, help),
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION
          Option("positions", &s.positions,
                 "positions that an elstm1 or elstm2 trains a vector for, the last one serving "
                 "those beyond; 0: max-length")
              .range(0, 1000000),
          Option("bias", &s.bias, "a bias on the units' input projections as well"),
          Option("groups", &s.groups,
                 "blocks in the matrices of all recurrent units, for a share of the weights; "
                 "divides the width of every "
                 "unit and of what it reads")
              .range(1, 1024),
          Option("rearrange", &s.rearrange,
                 "with groups, a unit's matrices read the groups' channels in turn, so that every "
                 "group sees all of "
                 "them in the next layer and at the next time step"),
          Option("dim-emb", &s.dim_emb, "width of the embeddings")
              .range(1, 65536)
              .chosen_by_default(),
          Option("dim-rnn", &s.dim_rnn, "width of the recurrent layers")
              .range(1, 65536)
              .chosen_by_default(),
          Option("enc-depth", &s.enc_depth, "layers of the encoder")
              .range(1, 64)
              .chosen_by_default(),
          Option("dec-depth", &s.dec_depth, "layers of the decoder")
              .range(1, 64)
              .chosen_by_default(),
          Option("layer-normalization", &s.layer_normalization,
                 "layer normalization in units and between layers"),
          Option("attention", &s.attention,
                 "score of a query and a key: additive (Bahdanau) or scaled dot product; none: "
                 "the source is read through the initial states alone"),
          Option("heads", &s.heads,
                 "attention heads; divides the attention space and the memory's width")
              .range(1, 1024),
          Option("dim-attention", &s.dim_attention,
                 "width of the attention space; 0: that of the memory")
              .range(0, 65536),
          Option("attention-query", &s.attention_query,
                 "what asks the source: the conditional layer's lower unit, or a plain first layer "
                 "for all steps at once; "
                 "auto: as the architecture has it"),
          Option("tied-embeddings", &s.tied_embeddings,
                 "one matrix for target embedding and softmax"),
          Option("tied-embeddings-src", &s.tied_embeddings_src,
                 "one matrix for source and target embedding; needs a joint vocabulary"),
          Option("tied-embeddings-all", &s.tied_embeddings_all,
                 "one matrix for both embeddings and softmax; needs a joint vocabulary"),
          Option("dropout", {}, "all three dropouts below, where they are not set themselves")
              .range(0, 0.99)
              .meta("P")
              .spreads_to({"dropout-emb", "dropout-rnn", "dropout-readout"}),
          dropout("dropout-emb", &s.dropout_emb, "of embeddings"),
          dropout("dropout-rnn", &s.dropout_rnn, "of layers' outputs"),
          dropout("dropout-readout", &s.dropout_readout, "before the softmax"),
          Option("dropout-variational", &s.dropout_variational,
                 "drop the same values of embeddings and layers' outputs at all steps of a "
                 "sentence (Gal & Ghahramani "
                 "2016), in place of new ones at each step"),
          Option("init", &s.init,
                 "how the matrices of a new model are drawn; standard: recurrent ones orthogonal, "
                 "embeddings normal "
                 "with deviation width^-1/2, others glorot-uniform; orthogonal leaves embeddings "
                 "as they are")
              .meta("NAME"),
          Option("init-scale", &s.init_scale,
                 "bound of --init uniform (0: 0.08), deviation of normal (0: 0.01), factor of the "
                 "others (0: 1)")
              .range(0, 1000),
      });
}

}  // namespace

std::vector<Option> fields(ModelSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

}  // namespace nmt::config
