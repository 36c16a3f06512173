#include "kernels/recurrent/unit.h"

#include "core/rng.h"
#include "tests/kernels/guarded_memory.h"
#include "tests/support/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace units;

double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Values {
  std::vector<double> x, u, late, v, s, position;
};
using Numbers = std::vector<double>;

// The equations of a paper, written independently: the next states, and the input and forget gates
// if the unit has them.
struct Equations {
  std::function<Numbers(const Values&)> next, gates;
};

Equations lrn_family(std::function<Numbers(const Values&)> gates, int value, bool tanh) {
  return {[gates, value, tanh](const Values& v) -> Numbers {
            const Numbers at = gates(v);
            const double c = at[0] * v.x[value] + at[1] * v.s[0];
            return {tanh ? std::tanh(c) : c};
          },
          gates};
}
Numbers lrn_gates(const Values& v) {
  return {sigma(v.x[1] + v.s[0]), sigma(v.x[0] - v.s[0])};
}
Numbers glrn_gates(const Values& v) {
  return {1 - sigma(v.x[0] - v.s[0]), sigma(v.x[0] - v.s[0])};
}
Numbers elrn_gates(const Values& v) {
  return {1 - sigma(-v.s[0]), sigma(-v.s[0])};
}
Equations atr(bool paper, bool complement) {
  const auto gates = [=](const Values& v) -> Numbers {
    const double p = v.u[0], q = v.x[0], f = sigma(paper ? p - q : q - p);
    return {complement ? 1 - f : sigma(p + q), f};
  };
  return lrn_family(gates, 0, false);
}
Numbers gru_gates(const Values& v) {
  return {1 - sigma(v.x[0] + v.u[0]), sigma(v.x[0] + v.u[0])};
}
double rglru_decay(const Values& v) {
  return std::pow(sigma(-v.v[0]), 8 * sigma(v.x[0]));  // softplus(L) = -log sigmoid(-L)
}
double min_g(double x) {
  return x >= 0 ? x + 0.5 : sigma(x);
}
// HGRN (NeurIPS 2023), section 3.3: lambda = gamma + (1 - gamma) * mu, with mu =
// sigmoid(Linear(x)).
double hgrn_lambda(const Values& v) {
  const double gamma = sigma(v.v[0]);
  return gamma + (1 - gamma) * sigma(v.x[0]);
}
// xLSTM (arXiv 2405.04517), eq. 8-17, with the paper's states: a and l of the header are c/n and
// log n + m, so any stabilizer m gives c and n. Returns h, c/n, log n + m, i'/n and f' n'/n.
Numbers slstm(const Values& v, double m_before) {
  const auto preactivation = [&](int p) { return v.x[p] + v.u[p]; };
  const double n_before = std::exp(v.s[2] - m_before), c_before = v.s[1] * n_before;
  const double log_i = preactivation(0), log_f = std::log(sigma(preactivation(1)));
  const double m = std::max(log_f + m_before, log_i);                        // eq. 15
  const double i = std::exp(log_i - m), f = std::exp(log_f + m_before - m);  // eq. 16-17
  const double c = f * c_before + i * std::tanh(preactivation(2));           // eq. 8
  const double n = f * n_before + i;                                         // eq. 9
  return {sigma(preactivation(3)) * c / n, c / n, std::log(n) + m, i / n, f * n_before / n};
}
Equations lstm(bool reads_state) {
  const auto plane = [reads_state](const Values& v, int p) {
    return v.x[p] + (reads_state ? v.u[p] : 0.0);
  };
  const auto gates = [=](const Values& v) -> Numbers {
    return {sigma(plane(v, 0)), sigma(plane(v, 1))};
  };
  return {[=](const Values& v) -> Numbers {
            const Numbers at = gates(v);
            const double c = at[1] * v.s[1] + at[0] * std::tanh(plane(v, 3));
            return {sigma(plane(v, 2)) * std::tanh(c), c};
          },
          gates};
}

Equations ran(bool tanh) {
  const auto gates = [](const Values& v) -> Numbers {
    return {sigma(v.x[1] + v.u[0]), sigma(v.x[2] + v.u[1])};
  };
  return {[gates, tanh](const Values& v) -> Numbers {
            const Numbers at = gates(v);
            const double c = at[0] * v.x[0] + at[1] * v.s[1];
            return {tanh ? std::tanh(c) : c, c};
          },
          gates};
}
// i, f, o, g at x[0..3], without f for the second form; the state has no influence with `input: x`.
Equations elstm(bool forgets, bool reads_state) {
  const auto plane = [reads_state](const Values& v, int p) {
    return v.x[p] + (reads_state ? v.u[p] : 0.0);
  };
  const auto gates = [=](const Values& v) -> Numbers {
    return {v.position[0] * sigma(plane(v, 0)), forgets ? sigma(plane(v, 1)) : 1.0};  // eq. 24
  };
  return {[=](const Values& v) -> Numbers {
            const int o = forgets ? 2 : 1;
            const Numbers at = gates(v);
            const double i = sigma(plane(v, 0));
            const double c = at[1] * v.s[1] + v.position[0] * i * std::tanh(plane(v, o + 1));
            return {sigma(plane(v, o)) * std::tanh(c + v.v[0]), c};
          },
          gates};
}

// Units of units.def that are missing here are still checked against their own header in double,
// including gradients.
const std::map<std::string, Equations> equations = {
    {"lrn activation=tanh", lrn_family(lrn_gates, 2, true)},
    {"lrn activation=identity", lrn_family(lrn_gates, 2, false)},
    {"glrn activation=tanh", lrn_family(glrn_gates, 1, true)},
    {"glrn activation=identity", lrn_family(glrn_gates, 1, false)},
    {"elrn activation=tanh", lrn_family(elrn_gates, 0, true)},
    {"elrn activation=identity", lrn_family(elrn_gates, 0, false)},
    {"olrn ",
     {[](const Values& v) -> Numbers {
        const Numbers at = lrn_gates(v);
        const double c = at[0] * v.x[2] + at[1] * v.s[0];
        return {sigma(v.x[3] - c) * c};
      },
      lrn_gates}},
    {"sru ",
     {[](const Values& v) -> Numbers {
        const double f = sigma(v.x[0] + v.v[0] * v.s[1]), r = sigma(v.x[2] + v.v[1] * v.s[1]);
        const double c = f * v.s[1] + (1 - f) * v.x[1];
        return {r * c + (1 - r) * v.x[3], c};
      },
      [](const Values& v) -> Numbers {
        const double f = sigma(v.x[0] + v.v[0] * v.s[1]);
        return {1 - f, f};
      }}},
    // f_t = sigmoid(W_f x_t + b_f), c_t = f_t * c_(t-1) + (1 - f_t) * W x_t, h_t = ReLU(c_t): Kim
    // et al., WNGT 2019
    {"ssru ",
     {[](const Values& v) -> Numbers {
        const double f = sigma(v.x[0] + v.v[0]), c = f * v.s[1] + (1 - f) * v.x[1];
        return {std::max(c, 0.0), c};
      },
      [](const Values& v) -> Numbers {
        const double f = sigma(v.x[0] + v.v[0]);
        return {1 - f, f};
      }}},
    // z = sigmoid(Linear(x)), h~ = g(Linear(x)), h = (1 - z) h' + z h~; minLSTM with normalized
    // gates: Feng et al., arXiv 2410.01201
    {"mingru ",
     {[](const Values& v) -> Numbers {
        const double z = sigma(v.x[0]);
        return {(1 - z) * v.s[0] + z * min_g(v.x[1])};
      },
      [](const Values& v) -> Numbers {
        return {sigma(v.x[0]), 1 - sigma(v.x[0])};
      }}},
    {"minlstm ",
     {[](const Values& v) -> Numbers {
        const double f = sigma(v.x[0]), i = sigma(v.x[1]);
        return {(f * v.s[0] + i * min_g(v.x[2])) / (f + i)};
      },
      [](const Values& v) -> Numbers {
        const double f = sigma(v.x[0]), i = sigma(v.x[1]);
        return {i / (f + i), f / (f + i)};
      }}},
    // Griffin (arXiv 2402.19427), eq. 1-4, with a = exp(-c softplus(L) r) of its appendix A.
    {"rglru ",
     {[](const Values& v) -> Numbers {
        const double a = rglru_decay(v);
        return {a * v.s[0] + std::sqrt(1 - a * a) * (sigma(v.x[1]) * v.x[2])};
      },
      [](const Values& v) -> Numbers {
        const double a = rglru_decay(v);
        return {std::sqrt(1 - a * a) * sigma(v.x[1]), a};
      }}},
    {"hgrn ",
     {[](const Values& v) -> Numbers {
        const double lambda = hgrn_lambda(v), c = v.x[1] / (1 + std::exp(-v.x[1]));  // SiLU
        return {lambda * v.s[0] + (1 - lambda) * c};
      },
      [](const Values& v) -> Numbers {
        return {1 - hgrn_lambda(v), hgrn_lambda(v)};
      }}},
    {"slstm ",
     {[](const Values& v) -> Numbers {
        const Numbers at = slstm(v, 0.3);
        return {at[0], at[1], at[2]};
      },
      [](const Values& v) -> Numbers {
        const Numbers at = slstm(v, -2);
        return {at[3], at[4]};
      }}},
    {"rnn ", {[](const Values& v) -> Numbers { return {std::tanh(v.x[0] + v.u[0])}; }, {}}},
    // c_t = W_c c_(t-1) + W_in X_t, h_t = f(c_t): ELSTM, eq. 1-2. The product is v.late.
    {"srn ",
     {[](const Values& v) -> Numbers {
        const double c = v.x[0] + v.late[0];
        return {std::tanh(c), c};
      },
      {}}},
    {"atr forget-gate=released input-gate=own", atr(false, false)},
    {"atr forget-gate=released input-gate=complement", atr(false, true)},
    {"atr forget-gate=paper input-gate=own", atr(true, false)},
    {"atr forget-gate=paper input-gate=complement", atr(true, true)},
    {"ran activation=tanh", ran(true)},
    {"ran activation=identity", ran(false)},
    {"elstm1 input=xh", elstm(true, true)},
    {"elstm1 input=x", elstm(true, false)},
    {"elstm2 input=xh", elstm(false, true)},
    {"elstm2 input=x", elstm(false, false)},
    {"gru reset=before",
     {[](const Values& v) -> Numbers {
        const double z = sigma(v.x[0] + v.u[0]), n = std::tanh(v.x[2] + v.late[0]);
        return {z * v.s[0] + (1 - z) * n};
      },
      gru_gates}},
    {"gru reset=after",
     {[](const Values& v) -> Numbers {
        const double z = sigma(v.x[0] + v.u[0]), r = sigma(v.x[1] + v.u[1]),
                     n = std::tanh(v.x[2] + r * v.u[2]);
        return {z * v.s[0] + (1 - z) * n};
      },
      gru_gates}},
    {"lstm input=xh", lstm(true)},
    {"lstm input=x", lstm(false)},
};

template <class U>
Step<double, U> random_step(Rng& rng) {
  Step<double, U> step{};
  for (double& x : step.x) x = rng.normal();
  for (double& x : step.u) x = rng.normal();
  for (double& x : step.late) x = rng.normal();
  for (double& x : step.v) x = rng.normal();
  for (double& x : step.s) x = rng.normal();
  for (double& x : step.position) x = rng.normal();
  return step;
}

template <class U>
void check_equation(const std::string& key, Rng& rng) {
  const auto equation = equations.find(key);
  if (equation == equations.end()) return;
  const Step<double, U> step = random_step<U>(rng);
  double next[U::states];
  U::forward(step, next);
  const Values values{{std::begin(step.x), std::end(step.x)},
                      {std::begin(step.u), std::end(step.u)},
                      {std::begin(step.late), std::end(step.late)},
                      {std::begin(step.v), std::end(step.v)},
                      {std::begin(step.s), std::end(step.s)},
                      {std::begin(step.position), std::end(step.position)}};
  const Numbers expected = equation->second.next(values);
  for (int p = 0; p < U::states; ++p) EXPECT_NEAR(next[p], expected[p], 1e-12) << key;
  double i = 0, f = 0;
  if constexpr (requires { U::gates(step, i, f); }) {
    ASSERT_TRUE(equation->second.gates) << key;
    U::gates(step, i, f);
    const Numbers gates = equation->second.gates(values);
    EXPECT_NEAR(i, gates[0], 1e-12) << key;
    EXPECT_NEAR(f, gates[1], 1e-12) << key;
  } else {
    EXPECT_FALSE(equation->second.gates) << key;
  }
}

// Gradients of an asymmetric sum of the next states, with the late value as an independent input.
template <class U>
void check_gradient(const std::string& key, Rng& rng) {
  Step<double, U> step = random_step<U>(rng);
  double weights[U::states];
  for (double& w : weights) w = rng.normal();
  const auto loss = [&] {
    double next[U::states], sum = 0;
    U::forward(step, next);
    for (int p = 0; p < U::states; ++p) sum += weights[p] * next[p];
    return sum;
  };
  Step<double, U> d{};
  U::backward(step, weights, d);
  for (int p = 0; p < U::inputs; ++p)
    EXPECT_NEAR(d.x[p], test::slope(loss, step.x[p]), 1e-8) << key << " x " << p;
  for (int p = 0; p < U::recurrents; ++p)
    EXPECT_NEAR(d.u[p], test::slope(loss, step.u[p]), 1e-8) << key << " u " << p;
  for (int p = 0; p < U::late; ++p)
    EXPECT_NEAR(d.late[p], test::slope(loss, step.late[p]), 1e-8) << key << " late " << p;
  for (int p = 0; p < U::vectors; ++p)
    EXPECT_NEAR(d.v[p], test::slope(loss, step.v[p]), 1e-8) << key << " v " << p;
  for (int p = 0; p < position_vectors_of<U>; ++p)
    EXPECT_NEAR(d.position[p], test::slope(loss, step.position[p]), 1e-8)
        << key << " position " << p;
  for (int p = 0; p < U::states; ++p)
    EXPECT_NEAR(d.s[p], test::slope(loss, step.s[p]), 1e-8) << key << " s " << p;
  if constexpr (U::late > 0) {
    const auto value = [&] { return U::late_value(step); };
    Step<double, U> late{};
    U::late_backward(step, 1.0, late);
    for (int p = 0; p < U::inputs; ++p)
      EXPECT_NEAR(late.x[p], test::slope(value, step.x[p]), 1e-8) << key << " late x " << p;
    for (int p = 0; p < U::recurrents; ++p)
      EXPECT_NEAR(late.u[p], test::slope(value, step.u[p]), 1e-8) << key << " late u " << p;
    for (int p = 0; p < U::states; ++p)
      EXPECT_NEAR(late.s[p], test::slope(value, step.s[p]), 1e-8) << key << " late s " << p;
  }
}

// Compares the compiled rows with the header in double, for odd widths, with one masked row.
template <class U>
void check_rows(const kernels::Unit& unit, Rng& rng) {
  for (const std::int64_t h : {1, 3, 31, 33, 257}) {
    constexpr int rows = 3;
    const auto draw = [&](std::int64_t n) {
      test::Guarded<float> v(n);
      for (float& x : v) x = rng.normal();
      return v;
    };
    const test::Guarded<float> x = draw(rows * U::inputs * h), u = draw(rows * U::recurrents * h),
                               late = draw(rows * U::late * h), v = draw(U::vectors * h),
                               s = draw(rows * U::states * h),
                               position = draw(position_vectors_of<U> * h);
    test::Guarded<float> next(rows * U::states * h);
    const float mask[rows] = {1, 0, 1};
    kernels::UnitStep step;
    step.rows = rows;
    step.width = h;
    step.x = x.data();
    step.u = u.data();
    step.late = late.data();
    step.vectors = v.data();
    step.position = position.data();
    step.mask = mask;
    for (int p = 0; p < U::states; ++p) {
      step.previous[p] = s.data() + p * rows * h;
      step.next[p] = next.data() + p * rows * h;
    }
    unit.forward(step);
    test::Guarded<float> input(rows * h), forget(rows * h);
    if (unit.gates) unit.gates(step, input.data(), forget.data());
    for (int r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < h; ++j) {
        Step<double, U> one{};
        for (int p = 0; p < U::inputs; ++p) one.x[p] = x[(r * U::inputs + p) * h + j];
        for (int p = 0; p < U::recurrents; ++p) one.u[p] = u[(r * U::recurrents + p) * h + j];
        for (int p = 0; p < U::late; ++p) one.late[p] = late[(r * U::late + p) * h + j];
        for (int p = 0; p < U::vectors; ++p) one.v[p] = v[p * h + j];
        for (int p = 0; p < position_vectors_of<U>; ++p) one.position[p] = position[p * h + j];
        for (int p = 0; p < U::states; ++p) one.s[p] = step.previous[p][r * h + j];
        double expected[U::states];
        U::forward(one, expected);
        for (int p = 0; p < U::states; ++p) {
          const double want = mask[r] != 0 ? expected[p] : one.s[p];
          ASSERT_NEAR(step.next[p][r * h + j], want, 2e-6 * (1 + std::abs(want)))
              << unit.name << ' ' << h << ' ' << r << ' ' << j;
        }
        double i = 0, f = 0;
        if constexpr (requires { U::gates(one, i, f); }) {
          U::gates(one, i, f);
          ASSERT_NEAR(input[r * h + j], i, 1e-6) << unit.name << ' ' << h << ' ' << r << ' ' << j;
          ASSERT_NEAR(forget[r * h + j], f, 1e-6) << unit.name << ' ' << h << ' ' << r << ' ' << j;
        } else {
          ASSERT_EQ(unit.gates, nullptr) << unit.name;
        }
      }
  }
}

// Whether the next value of state `linear` is a s + b in it, a and b depend on no state, and the
// next values depend on no other state.
template <class U>
bool is_linear(int linear, Rng& rng) {
  const auto next = [](const Step<double, U>& step) {
    std::array<double, U::states> to;
    double values[U::states];
    U::forward(step, values);
    std::copy_n(values, U::states, to.begin());
    return to;
  };
  for (int i = 0; i < 20; ++i) {
    Step<double, U> step = random_step<U>(rng);
    const auto at = next(step);
    for (int p = 0; p < U::states; ++p) {
      if (p == linear) continue;
      Step<double, U> other = step;
      other.s[p] += 1;
      if (next(other) != at) return false;
    }
    const auto state = [&](double more) {
      Step<double, U> other = step;
      other.s[linear] += more;
      return next(other)[static_cast<std::size_t>(linear)];
    };
    if (std::abs(state(1) - 2 * state(0) + state(-1)) > 1e-12) return false;
  }
  return true;
}

TEST(Units, LinearStates) {
  Rng rng(6);
#define NMT_UNIT(name, variant, ...)                                    \
  if (const int linear = linear_state_of<__VA_ARGS__>; linear >= 0) {   \
    const bool holds = is_linear<__VA_ARGS__>(linear, rng),             \
               is_matrix = __VA_ARGS__::recurrents + __VA_ARGS__::late; \
    EXPECT_TRUE(holds && !is_matrix) << name << ' ' << variant;         \
  }
#include "units/units.def"
#undef NMT_UNIT
  EXPECT_FALSE(is_linear<Sru>(1, rng)) << "its gates read the state";
  EXPECT_FALSE(is_linear<Lrn<Activation::identity>>(0, rng)) << "its gates read the state";
  EXPECT_FALSE(is_linear<Ssru>(0, rng)) << "the other state is read";
}

// A NaN in any plane of the input must propagate to the output or to the input of the late product.
template <class U>
void check_nan(const std::string& key, Rng& rng) {
  for (int p = 0; p < U::inputs; ++p) {
    Step<double, U> step = random_step<U>(rng);
    step.x[p] = std::nan("");
    double next[U::states];
    U::forward(step, next);
    bool seen = std::isnan(next[0]);
    if constexpr (U::late > 0) seen = seen || std::isnan(U::late_value(step));
    EXPECT_TRUE(seen) << key << " x " << p;
  }
}

TEST(Units, EquationsGradientsAndRows) {
  Rng rng(5);
  std::size_t line = 0;
#define NMT_UNIT(the_name, the_variant, ...)                                     \
  for (int i = 0; i < 20; ++i) {                                                 \
    check_equation<__VA_ARGS__>(std::string(the_name) + " " + the_variant, rng); \
    check_gradient<__VA_ARGS__>(std::string(the_name) + " " + the_variant, rng); \
  }                                                                              \
  check_nan<__VA_ARGS__>(std::string(the_name) + " " + the_variant, rng);        \
  check_rows<__VA_ARGS__>(kernels::units()[line], rng);                          \
  EXPECT_STREQ(kernels::units()[line].name, the_name);                           \
  ++line;
#include "units/units.def"
#undef NMT_UNIT
  EXPECT_EQ(line, kernels::units().size());
}

// Number of weight matrices of a unit over input and state: ATR paper, table 1, and LRN paper,
// section 3.
TEST(Units, WeightMatrices) {
  const std::map<std::string, int> expected = {
      {"lrn", 3},    {"olrn", 4},    {"glrn", 2},  {"elrn", 1}, {"sru", 4},    {"ssru", 2},
      {"mingru", 2}, {"minlstm", 3}, {"rglru", 3}, {"srn", 2},  {"hgrn", 2},   {"slstm", 8},
      {"rnn", 2},    {"atr", 2},     {"gru", 6},   {"lstm", 8}, {"ran", 4 + 1}};
  for (const kernels::Unit& unit : kernels::units())
    if (const auto it = expected.find(unit.name);
        it != expected.end() && std::string(unit.variant) != "input=x") {
      EXPECT_EQ(unit.inputs + unit.recurrents + unit.late, it->second)
          << unit.name << ' ' << unit.variant;
    }
}

}  // namespace
}  // namespace nmt
