// Prints a checksum of what each CPU kernel of a model in int8 computes, forward and backward.
// test_levels.py compares them between the instruction sets.

#include "core/rng.h"
#include "core/threads/thread_pool.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/instruction_set.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/products/product_method.h"
#include "kernels/recurrent/matrix_state.h"
#include "kernels/recurrent/recurrence.h"
#include "kernels/self_attention.h"
#include "kernels/softmax_loss.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace nmt;
using namespace nmt::kernels;
using Floats = std::vector<float>;

// Widths below, at and above the vectors of each instruction set.
constexpr std::int64_t widths[] = {1, 5, 16, 33, 100, 515};
constexpr std::int64_t rows = 3;
std::uint64_t seed = 1;

// n floats of several magnitudes.
Floats floats(std::int64_t n, float scale = 2.0f) {
  Rng rng(seed++);
  Floats x(static_cast<std::size_t>(n));
  for (float& v : x) v = scale * (2 * rng.uniform() - 1) * (rng.uniform() < 0.1f ? 10.0f : 1.0f);
  return x;
}

// FNV-1a of the bits.
class Sum {
 public:
  explicit Sum(std::string name) : name_(std::move(name)) {}
  ~Sum() { std::printf("%s %016" PRIx64 "\n", name_.c_str(), hash_); }
  void add(const Floats& x) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(x.data());
    for (std::size_t i = 0; i < x.size() * sizeof(float); ++i)
      hash_ = (hash_ ^ bytes[i]) * 1099511628211u;
  }

 private:
  std::string name_;
  std::uint64_t hash_ = 14695981039346656037u;
};

Floats zeros(std::int64_t n) {
  return Floats(static_cast<std::size_t>(n));
}

void pointwise(const Cpu& cpu) {
  const std::int64_t n = 20000;
  const Floats x = floats(n, 5.0f), dy = floats(n);
  Floats y = zeros(n);
  Sum tanh("tanh");
  tanh_forward(cpu, n, x.data(), y.data());
  tanh.add(y);
  tanh_backward(cpu, n, x.data(), dy.data(), y.data());
  add_scaled(cpu, n, 0.3f, x.data(), y.data());
  tanh.add(y);
  for (const Activation kind : {Activation::relu, Activation::silu, Activation::gelu}) {
    Sum sum("activation " + std::to_string(static_cast<int>(kind)));
    gate_forward(cpu, kind, n, x.data(), dy.data(), y.data());
    sum.add(y);
    Floats dx = zeros(n);
    gate_backward(cpu, kind, n, x.data(), x.data(), {dy.data(), y.data(), dx.data()});
    sum.add(y);
    sum.add(dx);
  }
}

void normalization(const Cpu& cpu) {
  Sum sum("layer normalization");
  for (const std::int64_t width : widths) {
    const std::int64_t planes = 2, n = rows * planes * width;
    const Floats x = floats(n), gain = floats(planes * width), bias = floats(planes * width);
    Floats y = zeros(n), statistics = zeros(2 * rows * planes), dgain = zeros(planes * width),
           dbias = zeros(planes * width);
    for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
      layer_norm(cpu, rows, planes, width, x.data(), gain.data(), b, y.data(), statistics.data());
      sum.add(y);
    }
    layer_norm_backward(cpu, rows, planes, width, y.data(), x.data(), statistics.data(),
                        gain.data(), y.data(), dgain.data(), dbias.data());
    for (const Floats* of : {&y, &statistics, &dgain, &dbias}) sum.add(*of);
  }
}

void attention(const Cpu& cpu) {
  for (const AttentionKind kind : {AttentionKind::additive, AttentionKind::dot}) {
    Sum sum(kind == AttentionKind::dot ? "dot attention" : "additive attention");
    for (const std::int64_t width : widths) {
      const std::int64_t steps = 40, heads = 2, space = heads * width;
      const std::int32_t lengths[rows] = {40, 1, 23};
      const Floats keys = floats(steps * rows * space), memory = floats(steps * rows * space),
                   v = floats(space), query = floats(rows * space);
      Floats exp_keys = keys;
      attention_exp_keys(cpu, steps * rows * space, keys.data(), exp_keys.data());
      Attention a;
      a.kind = kind;
      a.steps = steps;
      a.sentences = rows;
      a.space = a.width = space;
      a.heads = heads;
      a.keys = keys.data();
      a.exp_keys = exp_keys.data();
      a.memory = memory.data();
      a.lengths = lengths;
      a.v = v.data();
      Floats weights = zeros(rows * heads * steps), context = zeros(rows * space);
      attention_forward(cpu, a, 1, rows, nullptr, query.data(), weights.data(), context.data());
      sum.add(weights);
      sum.add(context);
    }
  }
  Sum sum("self-attention");
  const std::int32_t lengths[] = {33, 7};
  const SelfAttention a{33, 2, 2, 24, lengths};
  Floats scores = floats(a.groups() * a.steps * a.steps),
         x = floats(3 * a.steps * a.sentences * a.width()), y = x;
  const Floats turns = floats(a.steps * a.size), gradient = scores;
  self_attention_softmax(cpu, a, scores.data());
  sum.add(scores);
  Floats d = gradient;
  self_attention_softmax_backward(cpu, a, scores.data(), d.data());
  sum.add(d);
  rotate(cpu, a, turns.data(), false, x.data(), y.data());
  sum.add(y);
}

void output_layer(const Cpu& cpu) {
  Sum sum("log-sum-exp");
  for (const std::int64_t vocabulary : {3, 100, 515, 4099}) {
    Floats logits = floats(rows * vocabulary, 10.0f), maxima = zeros(rows * vocabulary),
           out = zeros(rows);
    const Floats bias = floats(vocabulary);
    log_sum_exp(cpu, rows, vocabulary, logits.data(), out.data());
    sum.add(out);
    finish_logits(cpu, rows, vocabulary, bias.data(), logits.data(), maxima.data(), out.data());
    sum.add(out);
    sum.add(maxima);
  }
}

// Products of weights in int8, and those that stay in float32 in such a model.
void products(const Cpu& cpu) {
  Sum eight("int8 products");
  for (const std::int64_t k : widths)
    for (const std::int64_t n : widths) {
      const Floats b = floats(k * n), a = floats(rows * k);
      std::vector<std::byte> packed(static_cast<std::size_t>(packed_int8_size(k, n)) + 64);
      const auto address = reinterpret_cast<std::uintptr_t>(packed.data());
      std::byte* const aligned = packed.data() + (64 - address % 64) % 64;
      pack_int8(cpu, false, k, n, b.data(), n, aligned);
      Floats c = floats(rows * n);
      gemm_int8(cpu, rows, n, k, a.data(), k, aligned, true, c.data(), n);
      eight.add(c);
      const std::int32_t ids[] = {0, static_cast<std::int32_t>(n - 1)};
      Floats columns = zeros(2 * k);
      gather_int8(cpu, 2, k, n, ids, aligned, columns.data());
      eight.add(columns);
    }
  const Cpu separate{cpu.pool, &ProductMethod::separate()};
  Sum full("products of float32 with separate roundings");
  for (const std::int64_t k : widths)
    for (const std::int64_t n : widths)
      for (const bool transpose : {false, true}) {
        const Floats b = floats(k * n), a = floats(rows * k);
        Floats c = zeros(rows * n);
        gemm(separate, false, transpose, rows, n, k, a.data(), k, b.data(), transpose ? k : n, 0.0f,
             c.data(), n);
        full.add(c);
        const BlockDiagonal d{3, 2, k, n, 2 * n};
        const Floats blocks = floats(3 * k * 2 * n), x = floats(rows * 3 * k);
        Floats packed = zeros(packed_batched_size(d.product(), k, n)), y = zeros(rows * 6 * n);
        pack_batched(separate, d.product(), false, k, n, blocks.data(), d.ld, packed.data());
        gemm_packed_batched(separate, d.product(), rows, n, k, x.data(), 3 * k, packed.data(),
                            false, y.data(), 6 * n);
        full.add(y);
      }
}

void recurrences(const Cpu& cpu) {
  static_cast<void>(cpu);
  for (const Unit& unit : units()) {
    Sum sum(std::string(unit.name) + " " + unit.variant);
    for (const std::int64_t width : {std::int64_t{5}, std::int64_t{100}}) {
      const auto planes = [&](int count) { return floats(rows * count * width); };
      const Floats x = planes(unit.inputs), u = planes(unit.recurrents), late = planes(unit.late),
                   vectors = floats(unit.vectors * width),
                   position = floats(unit.position_vectors * width);
      std::vector<Floats> before, after;
      UnitStep step;
      step.rows = rows;
      step.width = width;
      step.x = x.data();
      step.u = u.data();
      step.late = late.data();
      step.vectors = vectors.data();
      step.position = position.data();
      for (int p = 0; p < unit.states; ++p) {
        before.push_back(planes(1));
        after.push_back(planes(1));
        step.previous[p] = before[static_cast<std::size_t>(p)].data();
        step.next[p] = after[static_cast<std::size_t>(p)].data();
      }
      unit.forward(step);
      for (const Floats& state : after) sum.add(state);
      if (unit.late_value) {
        Floats value = planes(1);
        unit.late_value(step, value.data());
        sum.add(value);
      }
      if (!unit.backward) continue;
      UnitStepGradient g;
      Floats dx = planes(unit.inputs), du = planes(unit.recurrents), dlate = planes(unit.late),
             dvectors = zeros(unit.vectors * width),
             dposition = zeros(unit.position_vectors * width);
      g.dx = dx.data();
      g.du = du.data();
      g.dlate = dlate.data();
      g.dvectors = dvectors.data();
      g.dposition = dposition.data();
      std::vector<Floats> dstates;
      for (int p = 0; p < unit.states; ++p) dstates.push_back(planes(1));
      for (int p = 0; p < unit.states; ++p) {
        g.dnext[p] = dstates[static_cast<std::size_t>(p)].data();
        g.dprevious[p] = dstates[static_cast<std::size_t>(p)].data();
      }
      unit.backward(step, g);
      for (const Floats* of : {&dx, &du, &dlate, &dvectors, &dposition}) sum.add(*of);
      for (const Floats& state : dstates) sum.add(state);
    }
  }
}

void matrix_recurrences(const Cpu& cpu) {
  for (const Unit& unit : matrix_state_units()) {
    Sum sum(std::string(unit.name) + " " + unit.variant);
    for (const std::int64_t width : {std::int64_t{6}, std::int64_t{100}}) {
      MatrixRecurrence a;
      a.unit = &unit;
      a.steps = 2 * matrix_stride + 1;
      a.batch = 3;
      a.width = width;
      a.heads = 2;
      a.state_width = 5;
      const std::int64_t n = a.steps * a.batch, k = a.state_width,
                         trained = unit.matrix_state->rows * k * width;
      const Floats x = floats(n * unit.inputs * width), shared = floats(n * a.shared_width()),
                   vectors = floats(unit.vectors * width), of_rows = floats(trained),
                   h_before = floats(a.batch * width),
                   memory_before = floats(a.batch * a.memory_width()), dh = floats(n * width);
      Floats h = zeros(n * width), memory = zeros(a.batch * a.memory_width()),
             record = zeros(matrix_record(cpu, a)), checkpoints = zeros(3 * a.batch * k * width),
             dx = zeros(n * unit.inputs * width), dshared = zeros(n * a.shared_width()),
             dvectors = zeros(unit.vectors * width), drows = zeros(trained),
             scratch = zeros(matrix_scratch(cpu, a));
      a.x = x.data();
      a.shared = shared.data();
      a.vectors = vectors.data();
      a.rows = of_rows.data();
      a.h_before = h_before.data();
      a.memory_before = memory_before.data();
      a.h = h.data();
      a.memory = memory.data();
      a.record = record.data();
      a.checkpoints = checkpoints.data();
      matrix_forward(cpu, a);
      MatrixGradient g;
      g.dh = dh.data();
      g.dx = dx.data();
      g.dshared = dshared.data();
      g.dvectors = dvectors.data();
      g.drows = drows.data();
      g.scratch = scratch.data();
      matrix_backward(cpu, a, g);
      for (const Floats* of : {&h, &memory, &dx, &dshared, &dvectors, &drows}) sum.add(*of);
    }
  }
}

}  // namespace

int main() {
  ThreadPool pool(2);
  const Cpu cpu{&pool};
  std::printf("%s\n", instruction_set());
  pointwise(cpu);
  normalization(cpu);
  attention(cpu);
  output_layer(cpu);
  products(cpu);
  recurrences(cpu);
  matrix_recurrences(cpu);
}
