// step_counts: kernel launches and memory traffic of one training step on a GPU, or of eight steps
// of a beam search, or the device memory of a beam search, counted on the emulator
// (tests/emulator/dry/dry_run.h). Default: the training step of docs/design/cuda-training-step.md.

#include "app/program.h"
#include "config/precision.h"
#include "config/settings.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "model/decoding/model_scorer.h"
#include "model/model.h"
#include "search/beam/beam_search.h"
#include "search/beam/device_search.h"
#include "search/beam/top_k.h"
#include "tensor/context.h"
#include "tensor/copy.h"
#include "tensor/cuda_device.h"
#include "tests/emulator/dry/dry_run.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace nmt::test {
namespace {

struct StepSpec {
  ModelSpec model;
  std::string unit = "olrn";
  int vocabulary = 32000, sentences = 128, steps = 32, layers = 6, width = 1024, beam = 0;
  Precision precision = Precision::bfloat16;
  int max_launches = 0;
  double max_gigabytes = 0, max_memory = 0;
  bool totals = false, memory = false;
};

std::vector<config::Option> fields(StepSpec& spec) {
  using config::Option;
  return config::in_group(
      "step",
      {Option("unit", &spec.unit, "recurrent unit"),
       Option("type", &spec.model.type, "architecture"),
       Option("context-aware", &spec.model.context_aware, "context-aware encoder (LRN, section 5)"),
       Option("layer-normalization", &spec.model.layer_normalization, "layer normalization"),
       Option("attention", &spec.model.attention, "attention"),
       Option("heads", &spec.model.heads, "heads of the attention").range(1, 64),
       Option("tied-embeddings-all", &spec.model.tied_embeddings_all, "one table of embeddings"),
       Option("layers", &spec.layers, "layers of the encoder and of the decoder").range(1, 64),
       Option("width", &spec.width, "width of embeddings and states").range(1, 1 << 16),
       Option("vocabulary", &spec.vocabulary, "tokens of each vocabulary").range(4, 1 << 24),
       Option("sentences", &spec.sentences, "sentences of the batch").range(1, 1 << 16),
       Option("steps", &spec.steps, "tokens of a sentence, with </s>").range(2, 1 << 16),
       Option("beam", &spec.beam,
              "count eight steps of a search with this beam, computed; 0: a training step")
           .range(0, 1 << 10),
       Option("precision", &spec.precision, "input precision of matrix products"),
       Option("memory", &spec.memory,
              "with --beam: device memory of the search; nothing is computed"),
       Option("max-memory", &spec.max_memory,
              "with --memory: fail if the peak is more than this times the weights; 0: no limit")
           .range(0, 1e9),
       Option("totals", &spec.totals, "print the totals only"),
       Option("max-launches", &spec.max_launches, "fail if there are more; 0: no limit")
           .range(0, 1 << 30),
       Option("max-gigabytes", &spec.max_gigabytes, "fail if more are moved; 0: no limit")
           .range(0, 1e9)});
}

Batch full_batch(const StepSpec& spec) {
  Rng rng(2);
  std::vector<Ids> rows(static_cast<std::size_t>(spec.sentences),
                        Ids(static_cast<std::size_t>(spec.steps - 1)));
  std::vector<const Ids*> pointers;
  for (Ids& row : rows) {
    for (std::int32_t& id : row)
      id =
          static_cast<std::int32_t>(3 + rng.below(static_cast<std::uint64_t>(spec.vocabulary) - 3));
    pointers.push_back(&row);
  }
  return make_batch(pointers, pointers, 1, 2);
}

using Counts = std::map<std::string, emulator::Work>;

ModelSpec sized(const StepSpec& spec) {
  ModelSpec model = spec.model;
  model.enc_cell = model.dec_cell = spec.unit;
  model.dim_emb = model.dim_rnn = spec.width;
  model.enc_depth = model.dec_depth = spec.layers;
  model.dropout_emb = model.dropout_rnn = model.dropout_readout = 0.1;
  model.positions = 101;
  return model;
}

// A model on a device whose work is counted.
struct Counted {
  Counted(const StepSpec& spec, bool computes, Model::Weights weights = Model::Weights::fresh)
      : dry(computes),
        device(0, spec.precision),
        arena(std::size_t{1} << 30, device.memory_source()),
        context(make_context(arena, {&pool}, &device)),
        model(sized(spec), spec.vocabulary, spec.vocabulary, context, 1, weights) {
    device.set_graphs(false);
  }
  emulator::DryRun dry;
  ThreadPool pool{2};
  CudaDevice device;
  Arena arena;
  Context context;
  Model model;
};

// The work of eight steps: that of a search without that of a search that is eight tokens shorter.
// Everything is computed, since a search branches on scores; so sizes must be small.
Counts count_search(const StepSpec& spec) {
  Counted counted(spec, /*computes=*/true);
  const Context& context = counted.context;
  Model& model = counted.model;
  SearchOptions options;
  options.cpu = context.cpu;
  options.beam_size = spec.beam;
  options.max_length_factor = 0;
  // No hypothesis ends before the largest length.
  std::vector<float> bias(static_cast<std::size_t>(spec.vocabulary));
  bias[static_cast<std::size_t>(options.eos)] = -1e4f;
  const Parameter* const output_bias = model.parameters().find("decoder.output_bias");
  NMT_CHECK(output_bias, "the model has no output bias");
  upload(context, std::span<const float>(bias), output_bias->value);
  model.freeze();
  ModelScorer scorer(model, options.bos, options.eos);
  const std::vector<Ids> sources(static_cast<std::size_t>(spec.sentences),
                                 Ids(static_cast<std::size_t>(spec.steps - 1), 3));
  const auto search = [&](int length) {
    options.max_length_offset = length;
    counted.dry.clear();
    const std::vector<SentenceResult> found = beam_search(scorer, sources, options);
    NMT_CHECK(std::ssize(found[0].hypotheses[0].ids) == length, "the search ended after {} tokens",
              found[0].hypotheses[0].ids.size());
    return counted.dry.work();
  };
  constexpr int min_steps = 8;
  search(min_steps + steps_between_syncs);  // allocates the memory
  const Counts shorter = search(min_steps);
  Counts counts = search(min_steps + steps_between_syncs);
  for (const auto& [name, work] : shorter) {
    emulator::Work& rest = counts[name];
    rest.calls -= work.calls;
    rest.read -= work.read;
    rest.written -= work.written;
    rest.flops -= work.flops;
  }
  std::erase_if(counts, [](const auto& entry) { return entry.second.calls == 0; });
  return counts;
}

// Prints the device memory of a search, and fails if its peak is over the limit. A dry run has no
// scores, so all hypotheses go on from the first one.
ExitStatus check_memory(const StepSpec& spec) {
  NMT_CHECK(spec.beam > 0, "--memory needs --beam");
  Counted counted(spec, /*computes=*/false, Model::Weights::unset);
  const Context& context = counted.context;
  std::int64_t weights = 0;
  for (const Parameter& parameter : counted.model.parameters().all())
    weights += parameter.value.elements();
  const double weights_mb = 1e-6 * sizeof(float) * static_cast<double>(weights);
  counted.model.freeze();
  double peak_mb = 0;
  app::print("| after | MB in use | MB at peak |\n|---|---|---|\n");
  const auto report = [&](const std::string& after) {
    const Arena::Statistics now = counted.arena.statistics();
    peak_mb = 1e-6 * static_cast<double>(now.peak);
    app::print(fmt::format("| {} | {:.2f} | {:.2f} |\n", after,
                           1e-6 * static_cast<double>(now.in_use), peak_mb));
  };
  report("loading");
  const SearchOptions options;
  ModelScorer scorer(counted.model, options.bos, options.eos);
  const std::vector<Ids> sources(static_cast<std::size_t>(spec.sentences),
                                 Ids(static_cast<std::size_t>(spec.steps - 1), 3));
  const std::unique_ptr<Decoding> decoding = scorer.begin(sources, false);
  report("encoding");
  const std::int64_t rows = std::int64_t{spec.sentences} * spec.beam;
  const std::vector<std::int32_t> firsts(static_cast<std::size_t>(rows));
  const Tensor named = upload(context, firsts, {rows});
  TopK top_k(context.cpu, spec.vocabulary, spec.beam, {}, options.eos);
  for (int step = 1; step <= 3; ++step) {
    top_k.select_on_device(*decoding, decoding->advance_on_device({named, named, named}));
    report(fmt::format("step {}", step));
  }
  app::print(fmt::format("\nweights {:.2f} MB, peak {:.2f} times as much\n", weights_mb,
                         peak_mb / weights_mb));
  NMT_CHECK(spec.max_memory == 0 || peak_mb <= spec.max_memory * weights_mb,
            "the peak is {:.2f} times the weights, at most {} are allowed", peak_mb / weights_mb,
            spec.max_memory);
  return ExitStatus::ok;
}

// One step as nmt-train makes it, after one that has allocated the memory.
Counts count_step(const StepSpec& spec) {
  Counted counted(spec, /*computes=*/false);
  Model& model = counted.model;
  TrainSpec training;
  training.optimizer = UpdateRule::adam;
  train::Optimizer optimizer(training, model.parameters(), counted.context);
  const Batch batch = full_batch(spec);
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    counted.dry.clear();
    model.accumulate_gradients(batch, {0.1f, 1, pass}, optimizer.loss_sums(), {});
    optimizer.update(1e-6, batch.target_tokens);
  }
  return counted.dry.work();
}

emulator::Work sum_of(const Counts& counts) {
  emulator::Work sum;
  for (const auto& [name, work] : counts) {
    sum.calls += work.calls;
    sum.read += work.read;
    sum.written += work.written;
    sum.flops += work.flops;
  }
  return sum;
}

std::string row(const std::string& name, const emulator::Work& work) {
  return fmt::format("| {} | {} | {:.3f} | {:.3f} |\n", name, work.calls, 1e-9 * work.read,
                     1e-9 * work.written);
}

std::string table(const Counts& counts, bool totals) {
  std::vector<std::pair<std::string, emulator::Work>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) {
    return a.second.read + a.second.written > b.second.read + b.second.written;
  });
  std::string text = "| call | launches | GB read | GB written |\n|---|---|---|---|\n";
  if (!totals)
    for (const auto& [name, work] : rows) text += row(name, work);
  const emulator::Work sum = sum_of(counts);
  text += row("all", sum);
  return text + fmt::format("\n{} launches, {:.1f} GB, {:.2f} TFLOP in products\n", sum.calls,
                            1e-9 * (sum.read + sum.written), 1e-12 * sum.flops);
}

ExitStatus run(const StepSpec& spec) {
  if (spec.memory) return check_memory(spec);
  NMT_CHECK(spec.max_memory == 0, "--max-memory needs --memory");
  const Counts counts = spec.beam > 0 ? count_search(spec) : count_step(spec);
  app::print(table(counts, spec.totals));
  emulator::Work sum = sum_of(counts);
  if (spec.beam > 0) {
    sum.calls = (sum.calls + steps_between_syncs - 1) / steps_between_syncs;
    app::print(fmt::format("eight steps of the search, {} launches a step\n", sum.calls));
  }
  const double gigabytes = 1e-9 * (sum.read + sum.written);
  NMT_CHECK(spec.max_launches == 0 || sum.calls <= spec.max_launches,
            "{} launches, at most {} are allowed: run without --totals to find the new ones",
            sum.calls, spec.max_launches);
  NMT_CHECK(spec.max_gigabytes == 0 || gigabytes <= spec.max_gigabytes,
            "{:.1f} GB, at most {} are allowed: run without --totals to find what moves them",
            gigabytes, spec.max_gigabytes);
  return ExitStatus::ok;
}

}  // namespace
}  // namespace nmt::test

int main(int argc, char** argv) {
  using namespace nmt;
  test::StepSpec spec;
  spec.model.type = ModelType::deep;
  spec.model.context_aware = true;
  spec.model.attention = AttentionType::dot;
  spec.model.heads = 8;
  config::Settings settings("step_counts", "[OPTIONS]",
                            "counts kernel launches and memory traffic of a training step, or "
                            "with --beam of a step of a search");
  settings.add(test::fields(spec));
  return app::run_tool(argc, argv, settings, [&] { return test::run(spec); });
}
