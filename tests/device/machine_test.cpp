#include "tests/device/machine.h"

#include "core/rng.h"
#include "data/alignment/batch_links.h"
#include "tensor/copy.h"

#include <algorithm>
#include <sstream>

namespace nmt::test {

std::vector<Ids> random_sentences(std::uint64_t seed, int n, int vocabulary, int longest) {
  Rng rng(seed);
  std::vector<Ids> out(static_cast<std::size_t>(n));
  for (Ids& ids : out) {
    ids.resize(1 + rng.below(static_cast<std::uint64_t>(longest)));
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(3 + rng.below(static_cast<std::uint64_t>(vocabulary - 3)));
  }
  return out;
}

Batch learnable_batch(std::uint64_t seed, int n, int longest) {
  const std::vector<Ids> sources =
      random_sentences(seed, n, std::min(source_size, target_size), longest);
  std::vector<Ids> targets = sources;
  std::vector<const Ids*> s, t;
  std::vector<Ids> links(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::reverse(targets[i].begin(), targets[i].end());
    s.push_back(&sources[i]);
    t.push_back(&targets[i]);
    const auto length = static_cast<std::int32_t>(sources[i].size());
    for (std::int32_t at = 0; at < length; ++at)
      if (at % 3 != 2) links[i].insert(links[i].end(), {length - 1 - at, at});
  }
  Batch batch = make_batch(s, t, bos, eos);
  batch.extra = std::make_shared<BatchLinks>(std::move(links));
  return batch;
}

std::vector<float> weights_of(const Context& context, Model& model) {
  std::vector<float> all;
  for (const Parameter& p : model.parameters().all()) {
    const std::vector<float> values = download<float>(context, p.value);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

ModelSpec small_model(const std::string& text) {
  std::istringstream words(text);
  ModelSpec spec;
  std::string type, unit;
  words >> type >> unit;
  spec.type = parse_enum<ModelType>(type, "type");
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = spec.dim_rnn = 9;
  spec.dim_attention = 5;
  spec.positions = 16;
  spec.layer_normalization = false;
  spec.enc_depth = spec.dec_depth = spec.type == ModelType::rnnsearch ? 1 : 2;
  if (spec.type == ModelType::gnmt) spec.enc_depth = spec.dec_depth = 3;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.1;
  for (std::string word; words >> word;) {
    if (word == "groups") {
      spec.dim_emb = spec.dim_rnn = 12;
      spec.groups = 3;
      spec.rearrange = true;
    } else if (word == "blocks") {
      spec.dim_emb = spec.dim_rnn = 24;
      spec.groups = 3;
      spec.rearrange = false;
    } else if (word == "after") {
      spec.reset = ResetPlace::after;
    } else if (word == "bias") {
      spec.bias = true;
    } else if (word == "chrono") {
      spec.gate_init = GateInit::chrono;
    } else if (word == "norm") {
      spec.layer_normalization = true;
    } else if (word == "tied") {
      spec.tied_embeddings = true;
    } else if (word == "variational") {
      spec.dropout_variational = true;
    } else if (word == "aware") {
      spec.context_aware = true;
    } else if (word == "first-layer") {
      spec.attention_query = AttentionQuery::first_layer;
    } else if (word == "dot") {
      spec.attention = AttentionType::dot;
    } else if (word == "self-attention") {
      spec.dim_emb = spec.dim_rnn = 12;
      spec.block.encoder_mixer = EncoderMixer::attention;
      spec.block.encoder_heads = 3;
      spec.block.feed_forward = FeedForwardKind::relu;
    } else if (word == "none") {
      spec.attention = AttentionType::none;
      spec.dim_attention = 0;
    } else if (word == "eights") {
      spec.dim_emb = spec.dim_rnn = 16;
      spec.dim_attention = 8;
    } else if (word == "deeper") {
      spec.enc_depth = spec.dec_depth = 4;
    } else if (word == "heads") {
      spec.heads = 2;
      spec.attention_projections = true;
    } else if (word == "guided") {
      spec.alignment_head = spec.heads;
    } else if (word != "cudnn" && word != "persistent") {
      ADD_FAILURE() << "no option " << word;
    }
  }
  return spec;
}

}  // namespace nmt::test
