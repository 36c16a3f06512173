#include "app/benchmark/tables/tables.h"
#include "kernels/softmax_loss.h"
#include "tensor/rounded.h"

#include <cstring>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

struct Shape {
  std::int64_t rows, width, vocabulary;
};

class SoftmaxCase {
 public:
  SoftmaxCase(Case& a_case, const Shape& s, bool gradients)
      : case_(a_case),
        shape_(s),
        x_host_(Case::values(s.rows * s.width, 1)),
        table_host_(Case::values(s.vocabulary * s.width, 2)) {
    const Context& context = case_.training();
    for (std::int64_t r = 0; r < s.rows; ++r)
      target_host_.push_back(static_cast<std::int32_t>(r * 7919 % s.vocabulary));
    x_ = upload(context, x_host_, {s.rows * s.width});
    table_ = upload(context, table_host_, {s.vocabulary * s.width});
    target_ = upload(context, target_host_, {s.rows});
    sums_ = case_.zeros(4);
    if (gradients) {
      dx_ = case_.zeros(s.rows * s.width);
      dtable_ = case_.zeros(s.vocabulary * s.width);
    }
    dispatch(context, [&](const auto& backend) {
      if (kernels::reads_rounded(backend)) {
        rounded_x_ = Rounded(context, s.rows, s.width, x_.f32());
        rounded_table_ = Rounded(context, s.vocabulary, s.width, table_.f32());
      }
      scratch_ =
          context.empty({kernels::softmax_loss_scratch(backend, s.rows, s.width, s.vocabulary)});
    });
    const double product =
        2.0 * static_cast<double>(s.rows * s.width) * static_cast<double>(s.vocabulary);
    case_.work(gradients ? 3 * product : product, 0);
  }

  void run(std::int64_t rows) {
    kernels::SoftmaxLoss loss;
    loss.rows = rows;
    loss.width = shape_.width;
    loss.vocabulary = shape_.vocabulary;
    loss.x = x_.f32();
    loss.table = table_.f32();
    loss.rounded_x = rounded_x_.copy();
    loss.rounded_table = rounded_table_.copy();
    loss.target = target_.data<std::int32_t>();
    loss.smoothing = smoothing;
    loss.dx = dx_ ? dx_.f32() : nullptr;
    loss.dtable = dtable_ ? dtable_.f32() : nullptr;
    double* sums = reinterpret_cast<double*>(sums_.f32());
    loss.cross_entropy = sums;
    loss.smoothed = sums + 1;
    loss.scratch = scratch_.f32();
    dispatch(case_.training(), [&](const auto& backend) { kernels::softmax_loss(backend, loss); });
  }
  void run() { run(shape_.rows); }

  // Compares the loss of a few rows, and the gradient of one, with double precision.
  void check() {
    const std::int64_t rows = std::min<std::int64_t>(shape_.rows, 6), e = shape_.width,
                       v = shape_.vocabulary;
    run(rows);
    double sum = 0;
    std::vector<double> p(static_cast<std::size_t>(v));
    for (std::int64_t r = 0; r < rows; ++r) {
      double normalizer = 0;
      for (std::int64_t k = 0; k < v; ++k) {
        double logit = 0;
        for (std::int64_t j = 0; j < e; ++j)
          logit += static_cast<double>(x_host_[static_cast<std::size_t>(r * e + j)]) *
                   table_host_[static_cast<std::size_t>(k * e + j)];
        normalizer += p[static_cast<std::size_t>(k)] = std::exp(logit);  // |x|, |w| < 1: small
      }
      for (double& value : p) value /= normalizer;
      sum -= std::log(p[static_cast<std::size_t>(target_host_[static_cast<std::size_t>(r)])]);
    }
    double cross_entropy;
    std::memcpy(&cross_entropy, case_.read(sums_).data(), sizeof cross_entropy);
    // Inputs and gradients of the logits are rounded; on a GPU the logits too.
    const bool rounds =
        rounded_x_.copy() != nullptr || kernels::rounds_inputs(case_.training().cpu);
    case_.compare("the cross-entropy", cross_entropy, sum, sum, rounds ? 2e-2 : 1e-5);
    if (!dx_) return;
    const std::vector<float> dx = case_.read(dx_);
    const std::int64_t last = rows - 1;
    for (const std::int64_t j : {std::int64_t{0}, e / 2, e - 1}) {
      double expected = 0, scale = 0;
      for (std::int64_t k = 0; k < v; ++k) {
        const bool label = k == target_host_[static_cast<std::size_t>(last)];
        const double part = (p[static_cast<std::size_t>(k)] - (label ? 1 - smoothing : 0) -
                             smoothing / static_cast<double>(v)) *
                            table_host_[static_cast<std::size_t>(k * e + j)];
        expected += part;
        scale += std::abs(part);
      }
      case_.compare(fmt::format("dx[{},{}]", last, j), dx[static_cast<std::size_t>(last * e + j)],
                    expected, scale, rounds ? 2e-2 : 1e-4);
    }
  }

 private:
  static constexpr float smoothing = 0.1f;
  Case& case_;
  Shape shape_;
  std::vector<float> x_host_, table_host_;
  std::vector<std::int32_t> target_host_;
  Tensor x_, table_, target_, dx_, dtable_, scratch_, sums_;  // sums: two doubles
  Rounded rounded_x_, rounded_table_;
};

}  // namespace

void softmax(Bench& bench) {
  std::vector<Shape> shapes{{4096, 256, 8000},
                            {1024, 256, 8000},
                            {4096, 512, 8000},
                            {1024, 512, 32000},
                            {1024, 1024, 32000}};
  if (bench.options().quick) shapes = {{7, 12, 33}};
  for (const Shape& s : shapes)
    for (const bool gradients : {true, false})
      bench.row("softmax",
                fmt::format("{} R {} E {} V {}", gradients ? "loss and gradients" : "loss only",
                            s.rows, s.width, s.vocabulary),
                [&](Case& c) {
                  SoftmaxCase softmax(c, s, gradients);
                  softmax.check();
                  c.time([&] { softmax.run(); });
                });
}

}  // namespace nmt::app::bench
