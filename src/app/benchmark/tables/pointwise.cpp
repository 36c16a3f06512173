#include "kernels/pointwise.h"

#include "app/benchmark/tables/tables.h"
#include "kernels/layer_norm.h"
#include "kernels/optimizer.h"

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

// Several sets of arrays of n floats, used in turn.
class Rotated {
 public:
  Rotated(Case& c, std::int64_t n, int arrays) : arrays_(arrays) {
    for (int i = 0; i < arrays; ++i)
      host_.push_back(Case::values(n, static_cast<std::uint64_t>(i + 1)));
    const int sets = c.sets(static_cast<std::size_t>(arrays * n) * sizeof(float));
    for (int set = 0; set < sets; ++set)
      for (int i = 0; i < arrays; ++i)
        tensors_.push_back(upload(c.context(), host_[static_cast<std::size_t>(i)], {n}));
  }
  const std::vector<float>& host(int i) const { return host_[static_cast<std::size_t>(i)]; }
  /// Array i of the current set.
  Tensor& operator[](int i) {
    return tensors_[set_ * static_cast<std::size_t>(arrays_) + static_cast<std::size_t>(i)];
  }
  void next() { set_ = (set_ + 1) % (tensors_.size() / static_cast<std::size_t>(arrays_)); }

 private:
  int arrays_;
  std::vector<std::vector<float>> host_;
  std::vector<Tensor> tensors_;
  std::size_t set_ = 0;
};

struct Kernel {
  const char* name;
  int moved;   ///< arrays that must be read or written
  int arrays;  ///< arrays of a set
  int result;  ///< index of the compared array
  std::function<void(const Context&, Rotated&)> run;
  std::function<double(const std::vector<double>&)>
      expected;  ///< an element of the result from that element of every array
};

template <class Call>
auto with(Call call) {
  return [call](const Context& context, Rotated& r) {
    dispatch(context, [&](const auto& backend) { call(backend, r); });
  };
}

struct Size {
  std::int64_t rows, width;
  std::int64_t elements() const { return rows * width; }
};

std::vector<Kernel> kernels_of(std::int64_t n) {
  using V = const std::vector<double>&;
  return {
      {"fill", 1, 1, 0,
       with([n](const auto& b, Rotated& r) { kernels::fill(b, r[0].f32(), n, 0.5f); }),
       [](V) { return 0.5; }},
      {"add", 3, 3, 2, with([n](const auto& b, Rotated& r) {
         kernels::add(b, n, r[0].f32(), r[1].f32(), r[2].f32());
       }),
       [](V x) { return x[0] + x[1]; }},
      {"add_scaled", 3, 2, 1, with([n](const auto& b, Rotated& r) {
         kernels::add_scaled(b, n, 0.5f, r[0].f32(), r[1].f32());
       }),
       [](V x) { return x[1] + 0.5 * x[0]; }},
      {"tanh_forward", 2, 2, 1, with([n](const auto& b, Rotated& r) {
         kernels::tanh_forward(b, n, r[0].f32(), r[1].f32());
       }),
       [](V x) { return std::tanh(x[0]); }},
      {"tanh_backward", 4, 3, 2, with([n](const auto& b, Rotated& r) {
         kernels::tanh_backward(b, n, r[0].f32(), r[1].f32(), r[2].f32());
       }),
       [](V x) { return x[2] + x[1] * (1 - x[0] * x[0]); }},
      {"dropout", 2, 2, 1, with([n](const auto& b, Rotated& r) {
         kernels::dropout(b, 1, n, {}, 0.0f, 1, 2, r[0].f32(), r[1].f32());
       }),
       [](V x) { return x[0]; }},
  };
}

void time_kernel(Case& c, const Kernel& kernel, std::int64_t n) {
  Rotated arrays(c, n, kernel.arrays);
  kernel.run(c.context(), arrays);
  const std::vector<float> result = c.read(arrays[kernel.result]);
  for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / 97)) {
    std::vector<double> at;
    for (int a = 0; a < kernel.arrays; ++a)
      at.push_back(arrays.host(a)[static_cast<std::size_t>(i)]);
    c.compare(fmt::format("element {}", i), result[static_cast<std::size_t>(i)],
              kernel.expected(at), 1, 5e-6);
  }
  c.work(0, 4.0 * kernel.moved * static_cast<double>(n));
  c.time([&] {
    arrays.next();
    kernel.run(c.context(), arrays);
  });
}

// Kernels over the rows of a matrix, with one parameter per column.
void rows_of_table(Bench& bench, const Size& size) {
  const std::int64_t rows = size.rows, width = size.width, n = size.elements();
  const auto row = [&](const char* name, int moved, auto&& body, auto&& check) {
    bench.row("pointwise", fmt::format("{} {} x {}", name, rows, width), [&](Case& c) {
      Rotated arrays(c, n, 4);
      const Tensor gain = c.random(width, 9), dgain = c.zeros(width), dbias = c.zeros(width),
                   statistics = c.random(2 * rows, 10);
      const auto run = [&] {
        dispatch(c.context(), [&](const auto& backend) {
          body(backend, arrays, gain.f32(), dgain.f32(), dbias.f32(), statistics.f32());
        });
      };
      run();
      check(c, arrays, c.read(gain), c.read(dbias));
      c.work(0, 4.0 * moved * static_cast<double>(n));
      c.time([&] {
        arrays.next();
        run();
      });
    });
  };
  row(
      "add_bias", 2,
      [&](const auto& b, Rotated& a, float* gain, float*, float*, float*) {
        kernels::add_bias(b, rows, width, a[0].f32(), gain, a[1].f32());
      },
      [&](const Case& c, Rotated& a, const std::vector<float>& gain, const std::vector<float>&) {
        c.compare("the last element", c.read(a[1]).back(),
                  static_cast<double>(a.host(0).back()) + gain.back(), 1, 1e-6);
      });
  row(
      "sum_rows", 1,
      [&](const auto& b, Rotated& a, float*, float*, float* dbias, float*) {
        kernels::sum_rows(b, rows, width, a[0].f32(), dbias);
      },
      [&](const Case& c, Rotated& a, const std::vector<float>&, const std::vector<float>& dbias) {
        double sum = 0;
        for (std::int64_t r = 0; r < rows; ++r)
          sum += a.host(0)[static_cast<std::size_t>(r * width)];
        c.compare("the first column", dbias.front(), sum, static_cast<double>(rows), 1e-6);
      });
  const auto normal = [](const Rotated& a, std::int64_t columns, std::int64_t i) {
    double mean = 0, square = 0;
    for (std::int64_t j = 0; j < columns; ++j) mean += a.host(0)[static_cast<std::size_t>(j)];
    mean /= static_cast<double>(columns);
    for (std::int64_t j = 0; j < columns; ++j)
      square += std::pow(a.host(0)[static_cast<std::size_t>(j)] - mean, 2);
    return (a.host(0)[static_cast<std::size_t>(i)] - mean) /
           std::sqrt(square / static_cast<double>(columns) + kernels::layer_norm_epsilon);
  };
  row(
      "layer_norm", 2,
      [&](const auto& b, Rotated& a, float* gain, float*, float*, float* statistics) {
        kernels::layer_norm(b, rows, 1, width, a[0].f32(), gain, nullptr, a[1].f32(), statistics);
      },
      [&](const Case& c, Rotated& a, const std::vector<float>& gain, const std::vector<float>&) {
        c.compare("the first row's second element", c.read(a[1])[1], normal(a, width, 1) * gain[1],
                  1, 1e-5);
      });
  row(
      "layer_norm_backward", 3,
      [&](const auto& b, Rotated& a, float* gain, float* dgain, float* dbias, float* statistics) {
        kernels::layer_norm_backward(b, rows, 1, width, a[0].f32(), a[1].f32(), statistics, gain,
                                     a[2].f32(), dgain, dbias);
      },
      [&](const Case& c, Rotated& a, const std::vector<float>& gain, const std::vector<float>&) {
        // Ba et al. 2016: dx = rstd (g - mean(g) - n mean(g n)), g = dy gain; the first row's last
        // element
        // n = (x - center) rstd
        const double center = Case::values(2 * rows, 10)[0], rstd = Case::values(2 * rows, 10)[1];
        double mean = 0, with_normal = 0;
        for (std::int64_t j = 0; j < width; ++j) {
          const double g = static_cast<double>(a.host(0)[static_cast<std::size_t>(j)]) *
                           gain[static_cast<std::size_t>(j)];
          mean += g / static_cast<double>(width);
          with_normal += g * (a.host(1)[static_cast<std::size_t>(j)] - center) * rstd /
                         static_cast<double>(width);
        }
        const std::size_t last = static_cast<std::size_t>(width - 1);
        const double g = static_cast<double>(a.host(0)[last]) * gain[last];
        c.compare("the first row's last element", c.read(a[2])[last],
                  rstd * (g - mean - (a.host(1)[last] - center) * rstd * with_normal), 1, 1e-5);
      });
}

// Rules of train/optimization/optimizer.h: value, gradient (read, set to zero), states, average.
struct Rule {
  const char* name;
  int moved;
  bool average;
  std::function<void(const Context&, const kernels::OptimizerSlice&)> update;
  std::function<double(double value, double g, double first, double second)> expected;
};

std::vector<Rule> rules() {
  const auto call = [](auto update) {
    return [update](const Context& context, const kernels::OptimizerSlice& slice) {
      dispatch(context, [&](const auto& backend) { update(backend, slice); });
    };
  };
  kernels::AdamStep step;
  step.rate = 1e-3f;
  step.epsilon = 1e-8f;
  kernels::AdamStep averaged = step;
  averaged.smoothing = 1e-3f;
  kernels::AdadeltaStep adadelta;
  adadelta.rate = 1;
  kernels::SgdStep sgd;
  sgd.rate = 1e-3f;
  const auto adam = [](double value, double g, double m, double v) {
    return value - 1e-3 * (0.9 * m + 0.1 * g) / (std::sqrt(0.999 * v + 0.001 * g * g) + 1e-8);
  };
  return {
      {"adam", 8, false, call([=](const auto& b, const auto& s) { kernels::adam(b, &s, 1, step); }),
       adam},
      {"adam with average", 10, true,
       call([=](const auto& b, const auto& s) { kernels::adam(b, &s, 1, averaged); }), adam},
      {"adadelta", 8, false,
       call([=](const auto& b, const auto& s) { kernels::adadelta(b, &s, 1, adadelta); }),
       [](double value, double g, double m, double v) {
         return value - std::sqrt(v + 1e-6) / std::sqrt(0.95 * m + 0.05 * g * g + 1e-6) * g;
       }},
      {"sgd", 4, false, call([=](const auto& b, const auto& s) { kernels::sgd(b, &s, 1, sgd); }),
       [](double value, double g, double, double) { return value - 1e-3 * g; }}};
}

}  // namespace

void pointwise(Bench& bench) {
  const Size size = bench.options().quick ? Size{5, 33} : Size{4096, 1024};
  for (const Kernel& kernel : kernels_of(size.elements()))
    bench.row("pointwise", fmt::format("{} {}", kernel.name, size.elements()),
              [&](Case& c) { time_kernel(c, kernel, size.elements()); });
  rows_of_table(bench, size);
}

void optimizer(Bench& bench) {
  const std::int64_t n = bench.options().quick ? 1000 : std::int64_t{1} << 23;
  for (const Rule& rule : rules())
    bench.row("optimizer", fmt::format("{} {}", rule.name, n), [&](Case& c) {
      // Second moments must not be negative.
      std::vector<float> host[5];
      Tensor t[5];
      for (int i = 0; i < 5; ++i) {
        host[i] = Case::values(n, static_cast<std::uint64_t>(i + 1));
        if (i == 2 || i == 3)
          for (float& v : host[i]) v = std::abs(v);
        t[i] = upload(c.context(), host[i], {n});
      }
      const kernels::OptimizerSlice slice{
          n, t[0].f32(), t[1].f32(), t[2].f32(), t[3].f32(), rule.average ? t[4].f32() : nullptr};
      rule.update(c.context(), slice);
      const std::vector<float> value = c.read(t[0]);
      for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / 97)) {
        const std::size_t at = static_cast<std::size_t>(i);
        c.compare(fmt::format("weight {}", i), value[at],
                  rule.expected(host[0][at], host[1][at], host[2][at], host[3][at]), 1, 5e-6);
      }
      c.work(0, 4.0 * rule.moved * static_cast<double>(n));
      c.time([&] { rule.update(c.context(), slice); });
    });
  bench.row("optimizer", fmt::format("gradient_norm_squared {}", n), [&](Case& c) {
    const std::vector<float> host = Case::values(n, 1);
    const Tensor gradient = upload(c.context(), host, {n});
    const kernels::OptimizerSlice slice{n, nullptr, gradient.f32(), nullptr, nullptr, nullptr};
    const Tensor sum = c.context().empty({1}, Dtype::f64);
    double expected = 0;
    const auto run = [&] {
      dispatch(c.context(), [&](const auto& backend) {
        kernels::gradient_norm_squared(backend, &slice, 1, sum.data<double>());
      });
    };
    run();
    for (const float v : host) expected += static_cast<double>(v) * v;
    c.compare("the sum", download<double>(c.context(), sum)[0], expected, expected, 1e-9);
    c.work(0, 4.0 * static_cast<double>(n), Traffic::read);
    c.time(run);
  });
}

}  // namespace nmt::app::bench
