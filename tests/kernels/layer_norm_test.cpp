#include "kernels/layer_norm.h"

#include "core/threads/thread_pool.h"
#include "tests/kernels/random_floats.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Doubles = std::vector<double>;

// Ba et al. 2016, eq. 4, in double, with the gradient by the chain rule through mean and variance.
struct Reference {
  Doubles y, normal, mean, rstd, dx, dgain, dbias;
  Reference(std::int64_t rows, std::int64_t planes, std::int64_t width, const Floats& x,
            const Floats& gain, const Floats* bias, const Floats& dy)
      : y(x.size()),
        normal(x.size()),
        mean(static_cast<std::size_t>(rows * planes)),
        rstd(mean.size()),
        dx(x.size()),
        dgain(gain.size()),
        dbias(gain.size()) {
    const auto w = static_cast<std::size_t>(width);
    const double n = static_cast<double>(width);
    for (std::size_t part = 0; part < rstd.size(); ++part) {
      const std::size_t at = part * w, g = part % static_cast<std::size_t>(planes) * w;
      double& center = mean[part];
      double variance = 0, dvariance = 0, dmean = 0;
      for (std::size_t i = 0; i < w; ++i) center += x[at + i] / n;
      for (std::size_t i = 0; i < w; ++i)
        variance += (x[at + i] - center) * (x[at + i] - center) / n;
      const double s = rstd[part] = 1 / std::sqrt(variance + 1e-6);
      for (std::size_t i = 0; i < w; ++i) {
        const double centered = x[at + i] - center, dn = double{dy[at + i]} * gain[g + i];
        normal[at + i] = centered * s;
        y[at + i] = normal[at + i] * gain[g + i] + (bias ? (*bias)[g + i] : 0.0f);
        dgain[g + i] += dy[at + i] * normal[at + i];
        dbias[g + i] += dy[at + i];
        dvariance += dn * centered * -0.5 * s * s * s;
        dmean -= dn * s;
      }
      for (std::size_t i = 0; i < w; ++i)
        dx[at + i] = double{dy[at + i]} * gain[g + i] * s +
                     dvariance * 2 * (x[at + i] - center) / n + dmean / n;
    }
  }
};

void expect_near(const Floats& got, const Doubles& want, double bound, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], bound * (1 + std::abs(want[i]))) << what << ' ' << i;
}

TEST(LayerNorm, ForwardAndBackwardEqualDoublePrecision) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Cpu cpu{&pool};
    for (std::int64_t rows : {1, 3, 31, 33, 257})
      for (std::int64_t planes : {1, 3})
        for (std::int64_t width : {1, 3, 31, 33, 257})
          for (bool with_bias : {true, false}) {
            const std::int64_t stride = planes * width;
            const Floats x = random_floats(rows * stride, 1, 0.5f),
                         gain = random_floats(stride, 2, 1), bias = random_floats(stride, 3);
            const Floats dy = random_floats(rows * stride, 4);
            const Reference want(rows, planes, width, x, gain, with_bias ? &bias : nullptr, dy);
            const float* const b = with_bias ? bias.data() : nullptr;
            Floats y = x, statistics(static_cast<std::size_t>(2 * rows * planes));
            layer_norm(cpu, rows, planes, width, y.data(), gain.data(), b, y.data(),
                       statistics.data());
            expect_near(y, want.y, 1e-5, "y");
            for (std::size_t part = 0; part < want.rstd.size(); ++part) {
              ASSERT_NEAR(statistics[2 * part], want.mean[part], 1e-5);
              ASSERT_NEAR(statistics[2 * part + 1], want.rstd[part], 1e-5 * want.rstd[part]);
            }
            Floats plain(x.size());
            layer_norm(cpu, rows, planes, width, x.data(), gain.data(), b, plain.data(), nullptr);
            ASSERT_EQ(plain, y);

            Floats dx = dy, dgain(gain.size(), 1.0f), dbias(gain.size(), 2.0f);
            layer_norm_backward(cpu, rows, planes, width, dx.data(), x.data(), statistics.data(),
                                gain.data(), dx.data(), dgain.data(),
                                with_bias ? dbias.data() : nullptr);
            // The drivers of recurrences, from the normalized values.
            Floats of_rows = x, normal(x.size()), rstd(want.rstd.size());
            layer_norm_rows(rows, planes, width, of_rows.data(), gain.data(), b, of_rows.data(),
                            normal.data(), rstd.data());
            ASSERT_EQ(of_rows, y);
            expect_near(normal, want.normal, 1e-5, "normal");
            expect_near(rstd, want.rstd, 1e-5, "rstd");
            Floats dx_rows = dy, dgain_rows(gain.size(), 1.0f), dbias_rows(gain.size(), 2.0f);
            layer_norm_backward_rows(rows, planes, width, dx_rows.data(), normal.data(),
                                     rstd.data(), gain.data(), dx_rows.data(), dgain_rows.data(),
                                     with_bias ? dbias_rows.data() : nullptr);
            ASSERT_EQ(dx_rows, dx);
            // 1/sigma amplifies the rounding of g - mean(g) when a narrow row has little variance.
            for (std::size_t i = 0; i < dx.size(); ++i)
              ASSERT_NEAR(dx[i], want.dx[i],
                          4e-6 * (1 + want.rstd[i / static_cast<std::size_t>(width)]))
                  << i;
            for (std::size_t i = 0; i < gain.size(); ++i) {
              ASSERT_NEAR(dgain[i] - 1, want.dgain[i], 1e-4);
              ASSERT_NEAR(dgain_rows[i] - 1, want.dgain[i], 1e-4);
              if (!with_bias) continue;
              ASSERT_NEAR(dbias[i] - 2, want.dbias[i], 1e-4);
              ASSERT_NEAR(dbias_rows[i] - 2, want.dbias[i], 1e-4);
            }
          }
  }
}

TEST(LayerNorm, TheSumsDoNotDependOnTheThreads) {
  const std::int64_t rows = 257, planes = 2, width = 33, stride = planes * width;
  const Floats gain = random_floats(stride, 2), x = random_floats(rows * stride, 5),
               dy = random_floats(rows * stride, 4);
  const Floats statistics = random_floats(2 * rows * planes, 6, 2);
  Floats first_dx, first_gain, first_bias;
  for (int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    Floats dx(dy.size()), dgain(gain.size()), dbias(gain.size());
    layer_norm_backward({&pool}, rows, planes, width, dy.data(), x.data(), statistics.data(),
                        gain.data(), dx.data(), dgain.data(), dbias.data());
    if (threads == 1) first_dx = dx, first_gain = dgain, first_bias = dbias;
    EXPECT_EQ(dx, first_dx);
    EXPECT_EQ(dgain, first_gain);
    EXPECT_EQ(dbias, first_bias);
  }
}

TEST(LayerNorm, AConstantRowGivesTheBiasAndNoNan) {
  ThreadPool pool(1);
  const Floats x(64, 5.0f), gain(64, 2.0f), bias(64, 0.25f);
  Floats y(64), statistics(2);
  layer_norm({&pool}, 1, 1, 64, x.data(), gain.data(), bias.data(), y.data(), statistics.data());
  EXPECT_EQ(y, bias);
  EXPECT_EQ(statistics[0], 5.0f);
  EXPECT_NEAR(statistics[1], 1e3, 1);
}

}  // namespace
}  // namespace nmt::kernels
