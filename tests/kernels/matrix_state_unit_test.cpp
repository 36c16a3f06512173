// Matrix-state units: the equations of the papers, written independently in double with whole
// matrices, against the scan in double and the kernels in float; gradients of the scan against
// central differences of these equations.

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "kernels/recurrent/matrix_scan.h"
#include "tests/kernels/guarded_memory.h"
#include "tests/support/reference.h"
#include "units/all.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace units;
using Numbers = std::vector<double>;
using Matrix = std::vector<Numbers>;  // [channels of the head][K]

double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}
double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
Numbers unit_length(Numbers x) {
  const double length = std::sqrt(dot(x, x));
  for (double& value : x) value /= length;
  return x;
}

// What a head reads at a step, and its state, which the equations update.
struct Head {
  Matrix s;
  Numbers n;
  double m = 0;  // mlstm: log of the scale of s and n before the first step
  std::vector<Numbers> x, planes, vectors;  // x[p][channel], planes[p][k]
  Numbers scalars;
  Matrix rows;  // [channel][K]
};

// S = S' diag(a) + v k^T, h = S q.
Numbers decayed(Head& head, const Numbers& a, const Numbers& k, const Numbers& q) {
  Numbers h;
  for (std::size_t c = 0; c < head.s.size(); ++c) {
    for (std::size_t i = 0; i < a.size(); ++i)
      head.s[c][i] = head.s[c][i] * a[i] + head.x[0][c] * k[i];
    h.push_back(dot(head.s[c], q));
  }
  return h;
}

Numbers gla(Head& head) {
  Numbers a;
  for (const double z : head.planes[2]) a.push_back(std::pow(sigma(z), 1.0 / 16));
  return decayed(head, a, head.planes[1], head.planes[0]);
}

Numbers hgrn2(Head& head) {
  Numbers f, k;
  for (const double z : head.planes[1]) {
    f.push_back(sigma(z));
    k.push_back(1 - sigma(z));
  }
  return decayed(head, f, k, head.planes[0]);
}

// S = alpha S' (I - beta k k^T) + beta v k^T
Numbers gdn(Head& head) {
  const Numbers q = unit_length(head.planes[0]), k = unit_length(head.planes[1]);
  const double alpha = sigma(head.scalars[0]), beta = sigma(head.scalars[1]);
  Numbers h;
  for (std::size_t c = 0; c < head.s.size(); ++c) {
    Numbers next(k.size());
    for (std::size_t j = 0; j < k.size(); ++j) {
      for (std::size_t i = 0; i < k.size(); ++i)
        next[j] += alpha * head.s[c][i] * ((i == j ? 1.0 : 0.0) - beta * k[i] * k[j]);
      next[j] += beta * head.x[0][c] * k[j];
    }
    head.s[c] = next;
    h.push_back(dot(next, q));
  }
  return h;
}

// Not stabilized: C = f C' + i v k^T, n = f n' + i k, h = o C q / max(|n.q|, 1).
Numbers mlstm(Head& head) {
  for (Numbers& row : head.s)
    for (double& value : row) value *= std::exp(head.m);
  for (double& value : head.n) value *= std::exp(head.m);
  head.m = 0;
  const double i = std::exp(head.scalars[0]), f = sigma(head.scalars[1]);
  Numbers k = head.planes[1], h;
  for (double& value : k) value /= std::sqrt(static_cast<double>(k.size()));
  for (std::size_t j = 0; j < k.size(); ++j) head.n[j] = f * head.n[j] + i * k[j];
  const double size = std::max(std::abs(dot(head.n, head.planes[0])), 1.0);
  for (std::size_t c = 0; c < head.s.size(); ++c) {
    for (std::size_t j = 0; j < k.size(); ++j)
      head.s[c][j] = f * head.s[c][j] + i * head.x[0][c] * k[j];
    h.push_back(sigma(head.x[1][c]) * dot(head.s[c], head.planes[0]) / size);
  }
  return h;
}

Numbers mamba(Head& head) {
  Numbers h;
  for (std::size_t c = 0; c < head.s.size(); ++c) {
    const double u = head.x[0][c],
                 delta = std::log(1 + std::exp(head.x[1][c] + head.vectors[1][c]));
    for (std::size_t n = 0; n < head.s[c].size(); ++n)
      head.s[c][n] = std::exp(-delta * std::exp(head.rows[c][n])) * head.s[c][n] +
                     delta * head.planes[0][n] * u;
    h.push_back(dot(head.s[c], head.planes[1]) + head.vectors[0][c] * u);
  }
  return h;
}

const std::map<std::string, std::function<Numbers(Head&)>> equations = {
    {"gla", gla}, {"hgrn2", hgrn2}, {"gdn", gdn}, {"mlstm", mlstm}, {"mamba", mamba}};

// Input and forget gates of a head at a step: one each, one for each column of S, or, of all
// channels one after the other, one for each of their numbers.
struct Gates {
  Numbers input, forget;
};

const std::map<std::string, std::function<Gates(const Head&)>> gate_equations = {
    {"gla",
     [](const Head& head) {
       Gates gates;
       for (const double z : head.planes[2]) {
         gates.input.push_back(1);
         gates.forget.push_back(std::exp(-std::log(1 + std::exp(-z)) / 16));
       }
       return gates;
     }},
    {"hgrn2",
     [](const Head& head) {
       Gates gates;
       for (const double z : head.planes[1]) {
         gates.input.push_back(sigma(-z));
         gates.forget.push_back(sigma(z));
       }
       return gates;
     }},
    {"gdn",
     [](const Head& head) {
       return Gates{{sigma(head.scalars[1])}, {sigma(head.scalars[0])}};
     }},
    {"mlstm",
     [](const Head& head) {
       return Gates{{std::exp(head.scalars[0])}, {sigma(head.scalars[1])}};
     }},
    {"mamba", [](const Head& head) {
       Gates gates;
       for (std::size_t c = 0; c < head.rows.size(); ++c) {
         const double delta = std::log(1 + std::exp(head.x[1][c] + head.vectors[1][c]));
         for (const double row : head.rows[c]) {
           gates.input.push_back(delta);
           gates.forget.push_back(std::exp(-delta * std::exp(row)));
         }
       }
       return gates;
     }}};

template <class T>
test::Guarded<T> as(const Numbers& from) {
  return {from.begin(), from.end()};
}

// The operands of a recurrence in double.
struct Operands {
  const kernels::Unit& unit;
  std::int64_t steps, batch, width, heads;
  int k;
  bool reverse;
  test::Guarded<float> mask;
  Numbers x, shared, vectors, rows, h_before, memory_before;

  Operands(const kernels::Unit& of, Rng& rng, std::int64_t part, bool masked, bool backwards)
      : unit(of), steps(19), batch(2), width(2 * part), heads(2), k(5), reverse(backwards) {
    const auto draw = [&](Numbers& to, std::int64_t n) {
      to.resize(static_cast<std::size_t>(n));
      for (double& value : to) value = 0.7 * static_cast<double>(rng.normal());
    };
    if (masked)
      for (std::int64_t i = 0; i < steps * batch; ++i) mask.push_back(rng.below(4) > 0 ? 1.0f : 0);
    kernels::MatrixRecurrence shape = loop<float>();
    draw(x, steps * batch * unit.inputs * width);
    draw(shared, steps * batch * shape.shared_width());
    draw(vectors, unit.vectors * width);
    draw(rows, unit.matrix_state->rows * k * width);
    draw(h_before, batch * width);
    draw(memory_before, batch * shape.memory_width());
  }

  template <class T>
  kernels::BasicMatrixRecurrence<T> loop() const {
    kernels::BasicMatrixRecurrence<T> a;
    a.unit = &unit;
    a.steps = steps;
    a.batch = batch;
    a.width = width;
    a.heads = heads;
    a.state_width = k;
    a.reverse = reverse;
    a.mask = mask.empty() ? nullptr : mask.data();
    return a;
  }

  // h [T,B,H] by the equations. `gates`: those of every live step, as MatrixKernels::gates; 0 at
  // padded steps.
  Numbers by_equations(Gates* gates = nullptr) const {
    const kernels::MatrixState& state = *unit.matrix_state;
    const auto kernel = loop<double>();
    const std::int64_t part = width / heads, wide = kernel.memory_width();
    Numbers out(static_cast<std::size_t>(steps * batch * width));
    const auto slice = [](const Numbers& from, std::int64_t at, std::int64_t n) {
      return Numbers(from.begin() + at, from.begin() + at + n);
    };
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t g = 0; g < heads; ++g) {
        Head head;
        for (std::int64_t c = 0; c < part; ++c) {
          Numbers& row = head.s.emplace_back();
          for (int i = 0; i < k; ++i)
            row.push_back(memory_before[b * wide + i * width + g * part + c]);
          if (state.rows > 0) {
            Numbers& trained = head.rows.emplace_back();
            for (int i = 0; i < k; ++i) trained.push_back(rows[i * width + g * part + c]);
          }
        }
        const std::int64_t own = b * wide + k * width + g * state.head_memory(k);
        if (state.memory_vectors > 0) head.n = slice(memory_before, own, k);
        if (state.memory_scalars > 0) head.m = memory_before[own + k];
        for (int p = 0; p < unit.vectors; ++p)
          head.vectors.push_back(slice(vectors, p * width + g * part, part));
        Numbers h = slice(h_before, b * width + g * part, part);
        for (std::int64_t i = 0; i < steps; ++i) {
          const std::int64_t t = reverse ? steps - 1 - i : i, row = t * batch + b;
          if (mask.empty() || mask[row] != 0) {
            head.x.clear();
            head.planes.clear();
            for (int p = 0; p < unit.inputs; ++p)
              head.x.push_back(slice(x, (row * unit.inputs + p) * width + g * part, part));
            const std::int64_t at = row * kernel.shared_width() + g * kernel.head_input();
            for (int p = 0; p < state.planes; ++p)
              head.planes.push_back(slice(shared, at + p * k, k));
            head.scalars = slice(shared, at + state.planes * k, state.scalars);
            if (gates) add_gates(*gates, gate_equations.at(unit.name)(head), row, g);
            h = equations.at(unit.name)(head);
            if (state.normalizes)  // in the scale of the layer's normalization
              for (double& value : h) value *= 0.01;
          }
          std::copy(h.begin(), h.end(), out.begin() + row * width + g * part);
        }
      }
    return out;
  }

  void add_gates(Gates& all, const Gates& of_head, std::int64_t row, std::int64_t head) const {
    const std::size_t each = of_head.input.size(), rows_all = steps * batch;
    for (Numbers* side : {&all.input, &all.forget}) side->resize(rows_all * heads * each);
    const auto at = static_cast<std::ptrdiff_t>((row * heads + head) * each);
    std::copy(of_head.input.begin(), of_head.input.end(), all.input.begin() + at);
    std::copy(of_head.forget.begin(), of_head.forget.end(), all.forget.begin() + at);
  }
};

template <class T>
struct Storage {
  test::Guarded<T> x, shared, vectors, rows, h_before, memory_before, h, memory, record,
      checkpoints;
  kernels::BasicMatrixRecurrence<T> a;

  explicit Storage(const Operands& from)
      : x(as<T>(from.x)),
        shared(as<T>(from.shared)),
        vectors(as<T>(from.vectors)),
        rows(as<T>(from.rows)),
        h_before(as<T>(from.h_before)),
        memory_before(as<T>(from.memory_before)),
        a(from.loop<T>()) {
    h.resize(a.steps * a.batch * a.width);
    memory.resize(memory_before.size());
    record.resize(kernels::matrix_record(Cpu{}, from.loop<float>()));
    checkpoints.resize((a.steps / kernels::matrix_stride + 1) * a.batch * a.state_width * a.width);
    a.x = x.data();
    a.shared = shared.data();
    a.vectors = vectors.data();
    a.rows = rows.data();
    a.h_before = h_before.data();
    a.memory_before = memory_before.data();
    a.h = h.data();
    a.memory = memory.data();
    a.record = record.data();
    a.checkpoints = checkpoints.data();
  }
};

template <class U>
void check_scan(const kernels::Unit& unit, Rng& rng, std::int64_t part, bool masked, bool reverse) {
  if (!equations.contains(unit.name)) return;  // the gradients are checked in autograd_tests
  Operands operands(unit, rng, part, masked, reverse);
  Storage<double> s(operands);
  for (std::int64_t b = 0; b < s.a.batch; ++b)
    for (std::int64_t g = 0; g < s.a.heads; ++g)
      kernels::MatrixScan<double, U>(s.a, b, g).forward();
  const Numbers expected = operands.by_equations();
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(s.h[i], expected[i], 1e-10 * (1 + std::abs(expected[i]))) << unit.name << ' ' << i;

  Numbers dh(s.h.size()), dx(s.x.size()), dshared(s.shared.size()),
      sums(s.vectors.size() + s.rows.size()), dh_before(s.h_before.size()),
      dmemory(s.memory.size()), scratch(s.record.size());
  for (double& value : dh) value = static_cast<double>(rng.normal());
  kernels::BasicMatrixGradient<double> g;
  g.dh = dh.data();
  g.dx = dx.data();
  g.dshared = dshared.data();
  g.dh_before = dh_before.data();
  g.dmemory_before = dmemory.data();
  for (std::int64_t b = 0; b < s.a.batch; ++b)
    for (std::int64_t head = 0; head < s.a.heads; ++head)
      kernels::MatrixScan<double, U>(s.a, b, head).backward(g, sums.data(), scratch.data());
  const auto loss = [&] { return dot(operands.by_equations(), dh); };
  const auto check = [&](const char* what, Numbers& values, const double* gradient) {
    for (int sample = 0; sample < 30 && !values.empty(); ++sample) {
      const auto i = static_cast<std::size_t>(rng.below(static_cast<std::uint32_t>(values.size())));
      const double slope = test::slope(loss, values[i]);
      EXPECT_NEAR(gradient[i], slope, 2e-7 * (1 + std::abs(slope)))
          << unit.name << ' ' << what << ' ' << i << " part " << part;
    }
  };
  check("x", operands.x, dx.data());
  check("shared", operands.shared, dshared.data());
  check("vectors", operands.vectors, sums.data());
  check("rows", operands.rows, sums.data() + s.vectors.size());
  check("h before", operands.h_before, dh_before.data());
  // The scale of mlstm's memory is no operand of h: its gradient is 0 in the scan.
  if (unit.matrix_state->memory_scalars == 0)
    check("memory before", operands.memory_before, dmemory.data());
}

// The gates of a unit, by the kernels that nmt-explain calls.
void check_gates(const kernels::Unit& unit, Rng& rng, bool masked, bool reverse) {
  if (!gate_equations.contains(unit.name)) return;
  const Operands operands(unit, rng, 5, masked, reverse);
  Gates expected;
  operands.by_equations(&expected);
  const Storage<float> s(operands);
  const kernels::MatrixKernels& kernels = *unit.matrix_state->kernels;
  ASSERT_TRUE(kernels.gates) << unit.name;
  const std::int64_t width = kernels.gate_width(s.a);
  ASSERT_EQ(std::ssize(expected.input), s.a.steps * s.a.batch * width) << unit.name;
  std::vector<float> input(expected.input.size()), forget(expected.input.size());
  for (std::int64_t b = 0; b < s.a.batch; ++b)
    for (std::int64_t head = 0; head < s.a.heads; ++head)
      kernels.gates(s.a, {b, head}, input.data(), forget.data());
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(width);
    if (masked && operands.mask[row] == 0) continue;
    ASSERT_NEAR(input[i], expected.input[i], 2e-6 * (1 + expected.input[i])) << unit.name << i;
    ASSERT_NEAR(forget[i], expected.forget[i], 2e-6) << unit.name << ' ' << i;
  }
}

TEST(MatrixUnits, Gates) {
  Rng rng(9);
  for (const kernels::Unit& unit : kernels::matrix_state_units())
    for (const bool masked : {false, true})
      for (const bool reverse : {false, true}) check_gates(unit, rng, masked, reverse);
}

TEST(MatrixUnits, EquationsAndGradients) {
  Rng rng(7);
  std::size_t line = 0;
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(the_name, the_variant, ...)                             \
  check_scan<__VA_ARGS__>(kernels::matrix_state_units()[line], rng, 3, false, false); \
  check_scan<__VA_ARGS__>(kernels::matrix_state_units()[line], rng, 35, true, false); \
  check_scan<__VA_ARGS__>(kernels::matrix_state_units()[line], rng, 2, true, true);   \
  EXPECT_STREQ(kernels::matrix_state_units()[line].name, the_name);                   \
  ++line;
#include "units/units.def"
#undef NMT_UNIT
  EXPECT_EQ(line, kernels::matrix_state_units().size());
}

// Whether write(step, p) is a + b p with b of the extras alone, so that all channels of a head
// share b, and b is the slope that the unit's backward function has.
template <class U, class Write>
bool is_affine(Rng& rng, Write&& write) {
  const auto normal = [&] { return static_cast<double>(rng.normal()); };
  const auto random = [&](auto& numbers) {
    for (double& value : numbers) value = normal();
  };
  for (int i = 0; i < 20; ++i) {
    ChannelStep<double, U> step{}, d{};
    random(step.x), random(step.v), random(step.extra);
    double slope = 0;
    U::write_backward(step, normal(), 1.0, d, slope);
    random(step.x), random(step.v);
    for (const double p : {-3.0, 0.5, 2.0})
      if (std::abs(write(step, p) - write(step, 0.0) - slope * p) > 1e-12) return false;
  }
  return true;
}

TEST(MatrixUnits, WritesAreAffineInWhatTheyRead) {
  Rng rng(10);
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(name, variant, ...)                          \
  EXPECT_TRUE(is_affine<__VA_ARGS__>(rng, [](const auto& step, double p) { \
    return __VA_ARGS__::write(step, p);                                    \
  })) << name;
#include "units/units.def"
#undef NMT_UNIT
  EXPECT_FALSE(
      is_affine<Gdn>(rng, [](const auto& step, double p) { return Gdn::write(step, p) + p * p; }));
  EXPECT_FALSE(is_affine<Gdn>(
      rng, [](const auto& step, double p) { return Gdn::write(step, p) + step.x[0] * p; }));
}

// The float kernels against the equations; one step at a time, one sentence at a time and any
// number of threads give the same bits.
TEST(MatrixUnits, Kernels) {
  Rng rng(8);
  ThreadPool one(1), three(3), sixteen(16);
  Cpu cpu, cpu3, cpu16;
  cpu.pool = &one;
  cpu3.pool = &three;
  cpu16.pool = &sixteen;
  for (const kernels::Unit& unit : kernels::matrix_state_units()) {
    const Operands operands(unit, rng, 33, true, false);
    Storage<float> whole(operands);
    kernels::matrix_forward(cpu, whole.a);
    const Numbers expected = equations.contains(unit.name) ? operands.by_equations() : Numbers();
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(whole.h[i], expected[i], 2e-5 * (1 + std::abs(expected[i])))
          << unit.name << ' ' << i;

    Storage<float> threads(operands);
    kernels::matrix_forward(cpu3, threads.a);
    EXPECT_EQ(threads.h, whole.h) << unit.name;
    EXPECT_EQ(threads.memory, whole.memory) << unit.name;

    // Heads with much work have a thread each, also where there are few of them.
    const Operands wide(unit, rng, 700, true, false);
    const auto outputs = [&](const Cpu& on) {
      Storage<float> pass(wide);
      kernels::matrix_forward(on, pass.a);
      test::Guarded<float> dh(pass.h.size(), 0.5f), dx(pass.x.size()), dshared(pass.shared.size()),
          dvectors(pass.vectors.size()), drows(pass.rows.size()),
          scratch(static_cast<std::size_t>(kernels::matrix_scratch(on, pass.a)));
      kernels::MatrixGradient g;
      g.dh = dh.data();
      g.dx = dx.data();
      g.dshared = dshared.data();
      g.dvectors = dvectors.data();
      g.drows = drows.data();
      g.scratch = scratch.data();
      kernels::matrix_backward(on, pass.a, g);
      dvectors.insert(dvectors.end(), drows.begin(), drows.end());
      return std::tuple(pass.h, dx, dshared, dvectors);
    };
    const auto [h1, dx1, dshared1, trained1] = outputs(cpu);
    const auto [h3, dx3, dshared3, trained3] = outputs(cpu3);
    EXPECT_EQ(h3, h1) << unit.name;
    EXPECT_EQ(dx3, dx1) << unit.name;
    EXPECT_EQ(dshared3, dshared1) << unit.name;
    for (std::size_t i = 0; i < trained1.size(); ++i)  // sums of shares, in another order
      ASSERT_NEAR(trained3[i], trained1[i], 1e-5 * (1 + std::abs(trained1[i]))) << unit.name;

    // Where there are fewer heads than threads, these share the tiles of a head.
    ASSERT_LT(wide.batch * wide.heads, sixteen.size());
    const auto [h16, dx16, dshared16, trained16] = outputs(cpu16);
    EXPECT_EQ(h16, h1) << unit.name;
    EXPECT_EQ(dx16, dx1) << unit.name;
    for (std::size_t i = 0; i < dshared1.size(); ++i)  // sums of tiles, in another order
      ASSERT_NEAR(dshared16[i], dshared1[i], 1e-5 * (1 + std::abs(dshared1[i]))) << unit.name;
    for (std::size_t i = 0; i < trained1.size(); ++i)
      ASSERT_NEAR(trained16[i], trained1[i], 1e-5 * (1 + std::abs(trained1[i]))) << unit.name;

    Storage<float> stepwise(operands);
    test::Guarded<float> h, memory = stepwise.memory_before, before = stepwise.h_before;
    for (std::int64_t t = 0; t < operands.steps; ++t) {
      kernels::MatrixRecurrence a = stepwise.a;
      const std::int64_t row = t * a.batch;
      a.steps = 1;
      a.x += row * unit.inputs * a.width;
      a.shared += row * a.shared_width();
      a.mask += row;
      a.h += row * a.width;
      a.h_before = before.data();
      a.memory_before = memory.data();
      a.checkpoints = nullptr;
      kernels::matrix_forward(cpu, a);
      before.assign(a.h, a.h + a.batch * a.width);
      memory = stepwise.memory;
    }
    EXPECT_EQ(stepwise.h, whole.h) << unit.name;
    EXPECT_EQ(stepwise.memory, whole.memory) << unit.name;
  }
}

// A NaN in any number that a step reads reaches its output.
TEST(MatrixUnits, NotANumberPropagates) {
  Rng rng(9);
  ThreadPool pool(1);
  Cpu cpu;
  cpu.pool = &pool;
  for (const kernels::Unit& unit : kernels::matrix_state_units()) {
    const Operands operands(unit, rng, 4, false, false);
    const auto reaches = [&](test::Guarded<float> Storage<float>::*what, std::int64_t at) {
      Storage<float> s(operands);
      (s.*what)[static_cast<std::size_t>(at)] = std::nanf("");
      kernels::matrix_forward(cpu, s.a);
      return std::any_of(s.h.begin(), s.h.end(), [](float x) { return std::isnan(x); });
    };
    for (int p = 0; p < unit.inputs; ++p)
      EXPECT_TRUE(reaches(&Storage<float>::x, p * operands.width)) << unit.name << " x " << p;
    for (std::int64_t i = 0; i < operands.loop<float>().head_input(); ++i)
      EXPECT_TRUE(reaches(&Storage<float>::shared, i)) << unit.name << " shared " << i;
  }
}

}  // namespace
}  // namespace nmt
