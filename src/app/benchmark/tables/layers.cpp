#include "app/benchmark/tables/reference.h"
#include "app/benchmark/tables/tables.h"
#include "nn/recurrent/recurrent_layer.h"
#include "tensor/repeat.h"

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

struct Size {
  std::int64_t steps, batch, width;
};

class LayerCase {
 public:
  LayerCase(Case& a_case, std::size_t unit, const UnitSettings& settings, const Size& size)
      : case_(a_case),
        unit_(unit),
        settings_(settings),
        size_(size),
        layer_(Builder(a_case.context(), parameters_, rng_), settings, size.width) {
    const std::int64_t n = size.steps * size.batch * size.width;
    for (Parameter& p : parameters_.all()) {  // initial zeros or ones could hide errors
      const bool matrix = p.shape.rank() > 1 && p.shape[0] > 1;
      if (!matrix)
        upload(case_.context(), std::span<const float>(Case::values(p.shape.elements(), 7)),
               p.value);
    }
    x_host_ = Case::values(n, 3);
    dy_host_ = Case::values(n, 4);
    x_ = upload(case_.context(), x_host_, {size.steps, size.batch, size.width});
    dy_ = upload(case_.context(), dy_host_, {size.steps, size.batch, size.width});
    // The products with W and U; the backward pass has two more for each.
    const kernels::Unit& u = *settings.unit;
    const double planes = u.inputs + u.recurrents + u.late;
    flops_ = 2 * static_cast<double>(n) * planes * static_cast<double>(size.width) /
             static_cast<double>(settings.groups);
  }

  double flops() const { return flops_; }

  void run(bool training) {
    repeat(case_.context(), {reinterpret_cast<std::intptr_t>(this), training}, [&] {
      out_ = {};
      dx_ = {};
      Tape tape(case_.context(), training);
      const Var in = tape.result(x_);
      out_ = layer_(tape, in, {}, {});
      if (!training) return;
      out_[0]->gradient = dy_;
      tape.backward();
      dx_ = in->gradient;
    });
  }

  // Compares one sentence with the equations, and the derivative of sum(dy h) along a direction of
  // its input.
  void check() {
    if (settings_.groups > 1) return check_by_differences();
    const std::int64_t b = size_.batch / 2, h = size_.width;
    const double tolerance =
        rounds() ? 2e-2 : 1e-4;  // of products of rounded inputs, over all steps
    run(true);
    const std::vector<float> states = case_.read(out_[0]->value), dx = case_.read(dx_);
    const Doubles direction = doubles(Case::values(size_.steps * h, 5));
    const Doubles expected = reference(b, direction, 0);
    double derivative = 0, scale = 0, largest = 1;  // states of ATR can be large
    for (const double state : expected) largest = std::max(largest, std::abs(state));
    for (std::int64_t t = 0; t < size_.steps; ++t)
      for (std::int64_t j = 0; j < h; ++j) {
        const std::size_t here = static_cast<std::size_t>((t * size_.batch + b) * h + j),
                          there = static_cast<std::size_t>(t * h + j);
        case_.compare(fmt::format("h[{},{}] of sentence {}", t, j, b), states[here],
                      expected[there], largest, tolerance);
        derivative += dx[here] * direction[there];
        scale += std::abs(dx[here] * direction[there]);
      }
    constexpr double epsilon = 1e-5;
    const double slope =
        (objective(b, direction, epsilon) - objective(b, direction, -epsilon)) / (2 * epsilon);
    case_.compare("the derivative by the input", derivative, slope, scale, tolerance);
  }

 private:
  static Doubles doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

  // Whether the device rounds the inputs of products.
  bool rounds() const {
    const CudaDevice* const device = case_.context().cuda.device;
    return device && device->precision() != Precision::float32;
  }

  Doubles host(const char* name) {
    const Parameter* p = parameters_.find(name);
    return p ? doubles(case_.read(p->value)) : Doubles();
  }

  Doubles reference(std::int64_t b, const Doubles& direction, double epsilon) {
    const kernels::Unit& u = *settings_.unit;
    const std::int64_t h = size_.width, wide = u.inputs * h;
    SentenceRecurrence s;
    s.unit = unit_;
    s.steps = size_.steps;
    s.width = h;
    s.recurrent = host("recurrent_projection");
    s.bias = host("recurrent_projection_bias");
    s.vectors = host("vectors");
    s.positions = host("positions");
    const Doubles w = host("input_projection"), bias = host("input_projection_bias");
    s.x.assign(static_cast<std::size_t>(size_.steps * wide), 0.0);
    for (std::int64_t t = 0; t < size_.steps; ++t) {
      double* row = s.x.data() + t * wide;
      if (!bias.empty()) std::copy(bias.begin(), bias.end(), row);
      for (std::int64_t i = 0; i < h; ++i) {
        const double x = x_host_[static_cast<std::size_t>((t * size_.batch + b) * h + i)] +
                         epsilon * direction[static_cast<std::size_t>(t * h + i)];
        for (std::int64_t j = 0; j < wide; ++j)
          row[j] += x * w[static_cast<std::size_t>(i * wide + j)];
      }
    }
    return run_recurrence(s);
  }
  double objective(std::int64_t b, const Doubles& direction, double epsilon) {
    const Doubles h = reference(b, direction, epsilon);
    double sum = 0;
    for (std::int64_t t = 0; t < size_.steps; ++t)
      for (std::int64_t j = 0; j < size_.width; ++j)
        sum += dy_host_[static_cast<std::size_t>((t * size_.batch + b) * size_.width + j)] *
               h[static_cast<std::size_t>(t * size_.width + j)];
    return sum;
  }

  // With groups: compares the derivative with differences of the layer's own outputs along a
  // direction of its whole input.
  void check_by_differences() {
    run(true);
    const std::vector<float> dx = case_.read(dx_), direction = Case::values(x_.elements(), 5);
    double derivative = 0;
    for (std::size_t i = 0; i < dx.size(); ++i)
      derivative += static_cast<double>(dx[i]) * direction[i];
    // Rounded outputs are a step function of the input: the differences are large ones.
    const float epsilon = rounds() ? 0.0625f : 1e-3f;
    double sums[2] = {0, 0}, scale = 0;
    const Tensor x = x_;
    for (const int side : {0, 1}) {
      std::vector<float> moved = x_host_;
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += (side == 0 ? epsilon : -epsilon) * direction[i];
      x_ = upload(case_.context(), moved, x.shape());
      run(false);
      const std::vector<float> h = case_.read(out_[0]->value);
      for (std::size_t i = 0; i < h.size(); ++i)
        sums[side] += static_cast<double>(h[i]) * dy_host_[i];
    }
    x_ = x;
    for (std::size_t i = 0; i < dx.size(); ++i)
      scale +=
          static_cast<double>(dx[i] * direction[i]) * static_cast<double>(dx[i] * direction[i]);
    case_.compare("the derivative by the input", derivative,
                  (sums[0] - sums[1]) / (2.0 * static_cast<double>(epsilon)), std::sqrt(scale),
                  rounds() ? 0.2 : 0.05);
  }

  Case& case_;
  std::size_t unit_;
  UnitSettings settings_;
  Size size_;
  ParameterSet parameters_;
  Rng rng_{1};
  RecurrentLayer layer_;
  std::vector<float> x_host_, dy_host_;
  Tensor x_, dy_, dx_;
  std::vector<Var> out_;
  double flops_;
};

Size size_of(const Bench& bench) {
  return bench.options().quick ? Size{5, 9, 16} : Size{32, 64, 512};
}

std::string name_of(const kernels::Unit& unit) {
  return *unit.variant ? fmt::format("{} {}", unit.name, unit.variant) : unit.name;
}

}  // namespace

void layers(Bench& bench) {
  const Size size = size_of(bench);
  for (std::size_t i = 0; i < kernels::units().size(); ++i) {
    const kernels::Unit& unit = kernels::units()[i];
    for (const bool training : {false, true})
      bench.row("layers",
                fmt::format("{} {} T {} B {} H {}", name_of(unit),
                            training ? "forward+backward" : "forward", size.steps, size.batch,
                            size.width),
                [&](Case& c) {
                  LayerCase layer(
                      c, i,
                      {.unit = &unit, .width = size.width, .bias = true, .positions = size.steps},
                      size);
                  layer.check();
                  c.work((training ? 3 : 1) * layer.flops(), 0);
                  const double seconds = c.time([&] { layer.run(training); });
                  c.time_without_graphs([&] { layer.run(training); });
                  c.extra("tokens/s", static_cast<double>(size.steps * size.batch) / seconds);
                });
  }
}

void groups(Bench& bench) {
  const Size size = size_of(bench);
  for (std::size_t i = 0; i < kernels::units().size(); ++i) {
    const kernels::Unit& unit = kernels::units()[i];
    double dense = 0;
    for (const int groups : {1, 2, 4, 8})
      for (const bool rearrange : {false, true}) {
        if (rearrange && groups == 1) continue;
        bench.row(
            "groups",
            fmt::format("{} groups {}{}", name_of(unit), groups, rearrange ? " rearranged" : ""),
            [&](Case& c) {
              LayerCase layer(c, i,
                              {.unit = &unit,
                               .width = size.width,
                               .bias = true,
                               .groups = groups,
                               .rearrange = rearrange,
                               .positions = size.steps},
                              size);
              layer.check();
              c.work(3 * layer.flops(), 0);
              const double seconds = c.time([&] { layer.run(true); });
              c.time_without_graphs([&] { layer.run(true); });
              if (groups == 1) dense = seconds;
              if (dense > 0) c.extra("one group's time over it", dense / seconds);
            });
      }
  }
}

}  // namespace nmt::app::bench
