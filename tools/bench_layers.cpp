#include "bench_layers.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench.h"
#include "nmt/model/model.h"
#include "nmt/nn/recurrent_layer.h"

namespace nmt::tools {
namespace {

// Forward + backward of a product that costs as much, to set a layer's arithmetic beside.
double product_flops(const kernels::Unit& unit, std::int64_t rows, std::int64_t input, std::int64_t h) {
  const double planes = static_cast<double>(unit.inputs * input + (unit.recurrents + unit.late) * h);
  return 3 * 2.0 * static_cast<double>(rows) * planes * static_cast<double>(h);
}

void fill(Tensor& tensor, Rng& rng) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.f32()[i] = rng.normal();
}

constexpr std::int64_t steps = 32, batch = 64, width = 512;

struct LayerTime {
  double forward, both;  // seconds
};
LayerTime time_layer(ThreadPool& pool, const UnitSettings& settings) {
  Arena arena(std::size_t{1} << 24);
  Context context;
  context.arena = &arena;
  context.cpu.pool = &pool;
  ParameterSet parameters;
  Rng rng(1);
  const RecurrentLayer layer(Builder(context, parameters, rng), settings, width);
  Tensor x = context.empty({steps, batch, width}), dy = context.empty({steps, batch, width});
  fill(x, rng);
  fill(dy, rng);
  const auto pass = [&](bool recording) {
    Tape tape(context, recording);
    const Var in = tape.result(x);
    const std::vector<Var> out = layer(tape, in, {}, {});
    if (!recording) return;
    out[0]->gradient = dy;
    tape.backward();
  };
  const double forward = bench::shortest([&] { pass(false); }, 0.5);
  return {forward, bench::shortest([&] { pass(true); }, 1.0)};
}

}  // namespace

void bench_layers(ThreadPool& pool) {
  const double peak = bench::peak_flops(pool);
  fmt::print("A recurrent layer, forward + backward, T {} B {} width {} (input {}), threads {}; share: of the multiply-add loop\n\n", steps, batch,
             width, width, pool.size());
  fmt::print("| unit | ms forward | ms forward + backward | GFLOP/s | share |\n|---|---|---|---|---|\n");
  for (const kernels::Unit& unit : kernels::units()) {
    const LayerTime time = time_layer(pool, {.unit = &unit, .width = width, .bias = true, .positions = steps});
    const double rate = product_flops(unit, steps * batch, width, width) / time.both;
    fmt::print("| {} {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} % |\n", unit.name, unit.variant, time.forward * 1e3, time.both * 1e3, rate * 1e-9,
               100 * rate / peak);
    std::fflush(stdout);
  }
}

void bench_groups(ThreadPool& pool) {
  const double peak = bench::peak_flops(pool);
  fmt::print("A recurrent layer with groups, forward + backward, T {} B {} width {} (input {}), threads {}; share: of the multiply-add loop\n\n",
             steps, batch, width, width, pool.size());
  fmt::print("| unit | groups | rearranged | ms forward | ms forward + backward | over one group | GFLOP/s | share |\n"
             "|---|---|---|---|---|---|---|---|\n");
  for (const kernels::Unit& unit : kernels::units()) {
    double dense = 0;
    for (const int groups : {1, 2, 4, 8}) {
      for (const bool rearrange : {false, true}) {
        if (rearrange && groups == 1) continue;
        const LayerTime time = time_layer(pool, {.unit = &unit, .width = width, .bias = true, .groups = groups, .rearrange = rearrange});
        if (groups == 1) dense = time.both;
        const double rate = product_flops(unit, steps * batch, width, width) / groups / time.both;
        fmt::print("| {} {} | {} | {} | {:.1f} | {:.1f} | {:.2f} x | {:.1f} | {:.0f} % |\n", unit.name, unit.variant, groups,
                   rearrange ? "yes" : "no", time.forward * 1e3, time.both * 1e3, dense / time.both, rate * 1e-9, 100 * rate / peak);
        std::fflush(stdout);
      }
    }
  }
}

void bench_training(ThreadPool& pool) {
  const double peak = bench::peak_flops(pool);
  const int sentences = 256, steps = 16, vocabulary = 8000;
  fmt::print("A training pass (loss and gradients), deep model, width 256, 2+2 layers, {} symbols, {} x {} target tokens, threads {}\n\n", vocabulary,
             sentences, steps, pool.size());
  fmt::print("| unit | attention-query | ms | target tokens/s | GFLOP/s | share of the multiply-add loop |\n|---|---|---|---|---|---|\n");
  for (const char* unit : {"gru", "lstm", "lrn", "olrn"}) {
    for (const char* query : {"recurrent", "first-layer"}) {
      Arena arena(std::size_t{1} << 24);
      Context context;
      context.arena = &arena;
      context.cpu.pool = &pool;
      ModelSpec spec;
      spec.enc_cell = spec.dec_cell = unit;
      spec.dim_emb = spec.dim_rnn = 256;
      spec.enc_depth = spec.dec_depth = 2;
      spec.attention_query = query;
      spec.tied_embeddings_all = true;
      spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0.2;
      Model model(spec, vocabulary, vocabulary, context, 1);
      Rng rng(2);
      std::vector<Ids> rows(sentences, Ids(steps - 1));
      std::vector<const Ids*> pointers;
      for (Ids& row : rows) {
        for (std::int32_t& id : row) id = static_cast<std::int32_t>(3 + rng.below(vocabulary - 3));
        pointers.push_back(&row);
      }
      const Batch batch = make_batch(pointers, pointers, 1, 2);
      std::uint64_t pass = 0;
      const double seconds = bench::shortest([&] { model.accumulate_gradients(batch, {0.1f, 1, pass++}); }, 3.0);
      // Matrix weights are used once a source or target token; the shared table by the softmax; attention's scores are left out.
      double weights = static_cast<double>(vocabulary) * 256;
      for (const Parameter& p : model.parameters().all())
        if (p.shape.rank() == 2 && p.shape[1] > 1 && p.name != "decoder.embedding" && p.name.find("initial_state") == std::string::npos)
          weights += static_cast<double>(p.shape.elements());
      const double rate = 6.0 * weights * static_cast<double>(batch.target_tokens) / seconds;
      fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.1f} | {:.0f} % |\n", unit, query, seconds * 1e3,
                 static_cast<double>(batch.target_tokens) / seconds, rate * 1e-9, 100 * rate / peak);
      std::fflush(stdout);
    }
  }
}

}  // namespace nmt::tools
