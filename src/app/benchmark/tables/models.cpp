#include "app/benchmark/tables/models.h"

#include "app/benchmark/slope.h"
#include "model/inventory.h"

namespace nmt::app::bench {
namespace {

ModelSpec deep_spec(const std::string& unit, int width, int layers, double dropout) {
  ModelSpec spec;
  spec.type = ModelType::deep;
  spec.enc_cell = spec.dec_cell = unit;
  spec.dim_emb = spec.dim_rnn = width;
  spec.enc_depth = spec.dec_depth = layers;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = dropout;
  spec.positions = 101;
  return spec;
}

}  // namespace

ModelCase small_model(const std::string& unit, AttentionQuery query) {
  ModelCase m{"multi30k " + unit + " " + std::string(name_of(query)), deep_spec(unit, 256, 2, 0.2),
              8000, 256, 16};
  m.spec.attention_query = query;
  m.spec.tied_embeddings_all = true;
  return m;
}

ModelCase deep_model(const std::string& unit) {
  ModelCase m{"wmt14-en-de-lrn " + unit, deep_spec(unit, 1024, 6, 0.1), 32000, 32, 32};
  m.spec.context_aware = true;
  m.spec.attention = AttentionType::dot;
  m.spec.heads = 8;
  return m;
}

ModelCase wide_model(const std::string& unit) {
  ModelCase m{"wmt14-en-de-atr " + unit, deep_spec(unit, 1000, 1, 0), 40000, 32, 25};
  m.spec.type = ModelType::rnnsearch;
  m.spec.dim_emb = 620;
  m.spec.layer_normalization = false;
  m.spec.dropout_readout = 0.2;
  return m;
}

ModelCase gnmt_model(const std::string& unit) {
  ModelCase m{"gnmt " + unit, deep_spec(unit, 1024, 4, 0.2), 32000, 32, 32};
  m.spec.type = ModelType::gnmt;
  m.spec.layer_normalization = false;
  m.spec.tied_embeddings = false;
  m.spec.tied_embeddings_src = true;
  m.spec.dropout_readout = 0;
  return m;
}

ModelCase gru_model(int vocabulary, int width, int layers, int sentences, int steps) {
  ModelCase m{"gru", deep_spec("gru", width, layers, 0.2), vocabulary, sentences, steps};
  m.spec.reset = ResetPlace::after;
  m.spec.bias = true;
  m.spec.layer_normalization = false;
  m.spec.attention_query = AttentionQuery::first_layer;
  m.spec.tied_embeddings_all = true;
  return m;
}

ModelCase tiny_model(const std::string& unit) {
  ModelCase m{"tiny " + unit, deep_spec(unit, 16, 2, 0.1), 40, 5, 6};
  m.spec.tied_embeddings_all = true;
  return m;
}

Batch random_batch(const ModelCase& model) {
  Rng rng(2);
  std::vector<Ids> rows(static_cast<std::size_t>(model.sentences),
                        Ids(static_cast<std::size_t>(model.steps - 1)));
  std::vector<const Ids*> pointers;
  for (Ids& row : rows) {
    for (std::int32_t& id : row)
      id = static_cast<std::int32_t>(3 +
                                     rng.below(static_cast<std::uint64_t>(model.vocabulary - 3)));
    pointers.push_back(&row);
  }
  return make_batch(pointers, pointers, 1, 2);
}

double forward_flops(Model& model, const Batch& batch) {
  const Inventory inventory = take_inventory(model);
  const auto products = [&](const char* once, std::int64_t times) {
    return 2.0 * static_cast<double>(inventory.products(once)) * static_cast<double>(times);
  };
  return products("source token", batch.source_tokens) +
         products("target token", batch.target_tokens) + products("sentence", batch.sentences);
}

void check_gradients(Case& c, const ModelCase& what) {
  ModelCase small = what;
  small.spec.dim_emb = small.spec.dim_rnn = 16;
  small.spec.dropout_emb = small.spec.dropout_rnn = small.spec.dropout_readout = 0;
  small.vocabulary = 40;
  small.sentences = 3;
  small.steps = 5;
  // Rounded products make the loss a step function: central differences need float32.
  Model model(small.spec, small.vocabulary, small.vocabulary, with_bfloat16(c.training(), false),
              1);
  const Batch batch = random_batch(small);
  model.accumulate_gradients(batch, {});
  const GradientSlope found(model, batch);
  const CudaDevice* const device = c.context().cuda.device;
  if (!device || device->precision() == Precision::float32)
    return c.compare("the gradient's norm", found.norm, found.slope, found.norm, 2e-2);
  // A device rounds in every pass: the slope is that of the same model on the CPU.
  Arena arena;
  Model plain(small.spec, small.vocabulary, small.vocabulary,
              make_context(arena, c.bench().compute().cpu()), 1);
  plain.accumulate_gradients(batch, {});
  c.compare("the gradient's norm", found.norm, GradientSlope(plain, batch).slope, found.norm, 5e-2);
}

Context with_bfloat16(Context context, bool bfloat16) {
  if (bfloat16)
    context.cpu.products = &kernels::ProductMethod::bfloat16();
  else if (kernels::rounds_inputs(context.cpu))
    context.cpu.products = nullptr;
  return context;
}

}  // namespace nmt::app::bench
