#include "app/benchmark/tables/models.h"
#include "app/benchmark/tables/tables.h"
#include "tensor/cuda_timer.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <exception>
#include <optional>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

// Times of the parts of a pass, by the benchmark's clock. On CUDA, events are read after the pass.
class PartTimes : public Profile {
 public:
  struct Part {
    const char* name;
    PartWork work;
    double seconds = 0;
  };

  explicit PartTimes(Compute& compute) : clock_(compute.cuda() ? nullptr : Clock::of(compute)) {
    if (compute.cuda()) timer_.emplace(*compute.cuda());
  }

  void begin() override {
    if (timer_)
      timer_->mark();
    else
      clock_->start();
  }
  void end(const char* part, const PartWork& work) override {
    if (timer_) {
      try {  // a destructor calls this (tensor/profile.h)
        timer_->mark();
        calls_.push_back({part, work});
      } catch (...) {
        if (!error_) error_ = std::current_exception();
      }
      return;
    }
    add(part, work, clock_->stop());
  }

  /// The parts since the last call, in order of first occurrence. Throws what end() could not.
  std::vector<Part> take() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (timer_) {
      const std::vector<double> intervals = timer_->intervals();
      for (std::size_t i = 0; i < calls_.size(); ++i)
        add(calls_[i].name, calls_[i].work, intervals.at(2 * i));
      calls_.clear();
    }
    return std::exchange(parts_, {});
  }

 private:
  void add(const char* name, const PartWork& work, double seconds) {
    auto at = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& p) { return std::string_view(p.name) == name; });
    if (at == parts_.end()) at = parts_.insert(at, {name, {}, 0});
    at->work.flops += work.flops;
    at->work.bytes += work.bytes;
    at->seconds += seconds;
  }

  std::unique_ptr<Clock> clock_;
  std::optional<CudaTimer> timer_;
  std::vector<Part> calls_, parts_;
  std::exception_ptr error_;
};

std::vector<ModelCase> training_cases(Bench& bench) {
  if (bench.options().quick) return {tiny_model("gru"), tiny_model("lrn")};
  std::vector<ModelCase> cases;
  for (const char* unit : {"gru", "lstm", "lrn", "olrn", "atr", "sru"})
    for (const AttentionQuery query : {AttentionQuery::recurrent, AttentionQuery::first_layer})
      cases.push_back(small_model(unit, query));
  for (const char* unit : {"gru", "atr", "lrn", "olrn"}) cases.push_back(deep_model(unit));
  if (bench.compute().cuda())  // the batch of the paper
    for (const char* unit : {"olrn", "lrn", "gru"}) {
      cases.push_back(deep_model(unit));
      cases.back().sentences = 128;
    }
  cases.push_back(wide_model("atr"));
  cases.push_back(gnmt_model("lstm"));
  return cases;
}

std::string title(const ModelCase& m) {
  return fmt::format("{} B {} T {}", m.name, m.sentences, m.steps);
}

bool has_persistent_layers(const Model& model) {
  const auto& layers = model.recurrences();
  return std::any_of(layers.begin(), layers.end(), [](const RecurrentLayerInfo& layer) {
    return layer.persistent_unsupported.empty();
  });
}

// One training step, as nmt-train does it: gradients of a batch, then clipping, Adam and the reset
// of gradients.
void split(Bench& bench, const ModelCase& what) {
  const std::string title_ = title(what);
  if (!bench.wants("step", title_ + ": whole step")) return;
  std::vector<PartTimes::Part> best;
  double whole = 0, flops = 0;
  bench.row("step", title_ + ": whole step", [&](Case& c) {
    check_gradients(c, what);
    PartTimes times(bench.compute());
    Context context = c.training();
    Model model(what.spec, what.vocabulary, what.vocabulary, context, 1);
    const Batch batch = random_batch(what);
    TrainSpec spec;
    spec.optimizer = UpdateRule::adam;
    train::Optimizer optimizer(spec, model.parameters(), c.training());
    std::uint64_t pass = 0;
    const auto run = [&] {
      model.accumulate_gradients(batch, {0.1f, 1, pass++});
      optimizer.update(1e-6, batch.target_tokens);
    };
    flops = 3 * forward_flops(model, batch);
    const double weights = static_cast<double>(model.parameters().elements());
    c.work(flops, 0);
    whole = c.time(run);
    c.time_without_graphs(run);
    if (has_persistent_layers(model)) c.time_persistently(run);
    c.show_profiler(run);
    c.extra("target tokens/s", static_cast<double>(batch.target_tokens) / whole);
    c.extra("source+target tokens/s",
            static_cast<double>(batch.target_tokens + batch.source_tokens) / whole);
    c.extra("MFLOP a target token", 1e-6 * flops / static_cast<double>(batch.target_tokens));

    // Measures a few passes with a clock at every part; reports the shortest one.
    Context watched = c.training();
    watched.profile = &times;
    Model profiled(what.spec, what.vocabulary, what.vocabulary, watched, 1);
    double shortest = 1e30;
    for (int i = 0; i < (bench.options().quick ? 1 : 4); ++i) {
      bench.clock().start();
      profiled.accumulate_gradients(batch, {0.1f, 1, pass++});
      const double seconds = bench.clock().stop();
      std::vector<PartTimes::Part> parts = times.take();
      if (seconds >= shortest) continue;
      shortest = seconds;
      best = std::move(parts);
      double known = 0;
      for (const PartTimes::Part& part : best) known += part.seconds;
      best.push_back({"the rest", {}, std::max(0.0, seconds - known)});
    }
    best.push_back({"optimizer", {0, 4.0 * 9 * weights}, c.aside([&] {
                      optimizer.update(1e-6, batch.target_tokens);
                    })});
  });
  double sum = 0;
  for (const PartTimes::Part& part : best) sum += part.seconds;
  for (const PartTimes::Part& part : best) {
    Result r;
    r.table = "step";
    r.name = title_ + ": " + part.name;
    r.seconds = r.median = part.seconds;
    r.repetitions = 1;
    r.runs = 1;
    r.work = {part.work.flops, part.work.bytes, Traffic::copied};
    r.extras = {{"per cent of the step", 100 * part.seconds / sum}};
    bench.add(r);
  }
}

}  // namespace

void training(Bench& bench) {
  for (const ModelCase& what : training_cases(bench))
    bench.row("training", title(what), [&](Case& c) {
      check_gradients(c, what);
      Model model(what.spec, what.vocabulary, what.vocabulary, c.training(), 1);
      const Batch batch = random_batch(what);
      const double flops = 3 * forward_flops(model, batch);
      c.work(flops, 0);
      std::uint64_t pass = 0;
      const auto run = [&] { model.accumulate_gradients(batch, {0.1f, 1, pass++}); };
      const double seconds = c.time(run);
      c.time_without_graphs(run);
      c.extra("target tokens/s", static_cast<double>(batch.target_tokens) / seconds);
      c.extra("MFLOP a target token", 1e-6 * flops / static_cast<double>(batch.target_tokens));
    });
}

// Training passes in float32 and bfloat16 in alternation; the time of a row is that of both.
void mixed(Bench& bench) {
  if (bench.compute().cuda()) return;  // the device has one precision
  for (const ModelCase& what : training_cases(bench))
    bench.row("mixed", title(what), [&](Case& c) {
      check_gradients(c, what);
      const auto model = [&](bool bfloat16) {
        return Model(what.spec, what.vocabulary, what.vocabulary,
                     with_bfloat16(c.training(), bfloat16), 1);
      };
      Model single = model(false), rounded = model(true);
      const Batch batch = random_batch(what);
      const double flops = 3 * forward_flops(single, batch);
      c.work(2 * flops, 0);
      const auto clock = Clock::of(bench.compute());
      std::uint64_t pass = 0;
      const auto seconds_of = [&](Model& one) {
        clock->start();
        one.accumulate_gradients(batch, {0.1f, 1, pass++});
        return clock->stop();
      };
      double singles = 1e30, roundeds = 1e30;
      c.time([&] {
        singles = std::min(singles, seconds_of(single));
        roundeds = std::min(roundeds, seconds_of(rounded));
      });
      const auto tokens = static_cast<double>(batch.target_tokens);
      c.extra("float32, target tokens/s", tokens / singles);
      c.extra("bfloat16, target tokens/s", tokens / roundeds);
      c.extra("bfloat16 over float32", singles / roundeds);
    });
}

// One dimension grows while the others are constant. Growing lengths keep the tokens per batch
// about constant.
void growth(Bench& bench) {
  struct Point {
    const char* what;
    int vocabulary, width, layers, sentences, steps;
  };
  std::vector<Point> points;
  for (const int t : {8, 16, 32, 64, 125, 250, 500})
    points.push_back({"length", 8000, 256, 2, 2048 / t, t});
  for (const int h : {128, 256, 512, 1024}) points.push_back({"width", 8000, h, 2, 64, 16});
  for (const int layers : {1, 2, 4, 6}) points.push_back({"depth", 8000, 256, layers, 64, 16});
  for (const int v : {2000, 8000, 32000, 64000})
    points.push_back({"vocabulary", v, 256, 2, 64, 16});
  for (const int b : {1, 4, 16, 64, 256}) points.push_back({"batch", 8000, 256, 2, b, 16});
  if (bench.options().quick) points = {{"length", 40, 16, 1, 4, 6}};
  for (const Point& p : points)
    bench.row(
        "growth",
        fmt::format("{}: B {} T {} H {} layers {} V {}", p.what, p.sentences, p.steps, p.width,
                    p.layers, p.vocabulary),
        [&](Case& c) {
          const ModelCase what = gru_model(p.vocabulary, p.width, p.layers, p.sentences, p.steps);
          check_gradients(c, what);
          Model model(what.spec, what.vocabulary, what.vocabulary, c.training(), 1);
          const Batch batch = random_batch(what);
          c.work(3 * forward_flops(model, batch), 0);
          std::uint64_t pass = 0;
          const double seconds = c.time([&] {
            model.accumulate_gradients(batch, {0.1f, 1, pass++});
          });
          c.extra("weights", static_cast<double>(model.parameters().elements()));
          c.extra("us a target token", 1e6 * seconds / static_cast<double>(batch.target_tokens));
        });
}

void step(Bench& bench) {
  for (const ModelCase& what : training_cases(bench)) split(bench, what);
}

}  // namespace nmt::app::bench
