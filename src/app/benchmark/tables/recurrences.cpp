#include "app/benchmark/tables/reference.h"
#include "app/benchmark/tables/tables.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/recurrent/persistent.h"
#include "kernels/recurrent/recurrence.h"
#include "tensor/rounded.h"
#include "units/all.h"

#include <vector>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

struct Size {
  std::int64_t steps, batch, width;
  std::int64_t rows() const { return steps * batch; }
  std::int64_t elements() const { return rows() * width; }
};

float* pointer(const Tensor& t) {
  return t ? t.f32() : nullptr;
}

// Inputs and outputs of one run; a row rotates several.
struct Buffers {
  // Copies for products, where the device's products read them.
  Tensor states_rounded, late_value_rounded, du_rounded, dlate_rounded;
  Tensor x, states[kernels::max_states], u, late, late_value;  // forward
  Tensor dh, dx, du, dlate, dinitial[kernels::max_states], dvectors, dpositions,
      scratch;  // backward
};

class RecurrenceCase {
 public:
  RecurrenceCase(Case& a_case, std::size_t unit, const Size& size, bool backward)
      : case_(a_case),
        place_(unit),
        unit_(kernels::units()[unit]),
        size_(size),
        backward_(backward) {
    make_cell();
    const std::size_t elements = static_cast<std::size_t>(size_.elements());
    x_ = Case::values(size_.elements() * unit_.inputs, 3);
    dh_ = Case::values(size_.elements(), 4);
    const std::size_t one =
        elements * sizeof(float) * static_cast<std::size_t>(2 * unit_.inputs + unit_.states + 2);
    for (int i = 0; i < case_.sets(one); ++i) sets_.push_back(make_buffers());
  }

  void run() {
    Buffers& b = sets_[next_++ % sets_.size()];
    dispatch(case_.context(), [&](const auto& backend) {
      if (backward_)
        kernels::recurrence_backward(backend, view(b), gradient(b));
      else
        kernels::recurrence_forward(backend, view(b));
    });
  }

  // Compares h of one sentence with the equations and, for the backward pass, the derivative of
  // sum(dh h) along a direction of its x.
  void check() {
    // Of products of rounded inputs, over all steps.
    const CudaDevice* const device = case_.context().cuda.device;
    const double rounding = device && device->precision() != Precision::float32 ? 2e-2 : 0;
    run();
    const std::int64_t b = size_.batch / 2;
    SentenceRecurrence sentence = sentence_of(b);
    if (!backward_) return compare_states(b, run_recurrence(sentence), rounding + 5e-5);
    const std::vector<float> dx = case_.read(sets_[0].dx);
    const Doubles direction =
        doubles(Case::values(static_cast<std::int64_t>(sentence.x.size()), 5));
    double derivative = 0, scale = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      const double part = dx[place_of(b, i, unit_.inputs)] * direction[i];
      derivative += part;
      scale += std::abs(part);
    }
    constexpr double epsilon = 1e-5;
    const double expected =
        (objective(sentence, direction, b, epsilon) - objective(sentence, direction, b, -epsilon)) /
        (2 * epsilon);
    case_.compare("the derivative by x", derivative, expected, scale, rounding + 2e-5);
  }

  // Minimum traffic in planes of N = B T H values (gates are recomputed). Forward: reads x, writes
  // states. Backward: reads x, states and dh, writes dx; matrix units also write the operands of
  // products after the loop. Arithmetic: the products with the state.
  void count() {
    const double n = static_cast<double>(size_.elements()),
                 products = unit_.recurrents + unit_.late;
    const double forward = unit_.inputs + unit_.states + products,
                 backward = 2 * unit_.inputs + unit_.states + 1 + 2 * products;
    case_.work(2 * n * products * static_cast<double>(size_.width),
               4 * n * (backward_ ? backward : forward));
    case_.extra("planes moved", backward_ ? backward : forward);
  }

 private:
  static Doubles doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

  // Index in the batch's [T,B,planes*H] of element i of a sentence's [T,planes*H].
  std::size_t place_of(std::int64_t b, std::size_t i, std::int64_t planes) const {
    const std::int64_t wide = planes * size_.width, t = static_cast<std::int64_t>(i) / wide;
    return static_cast<std::size_t>((t * size_.batch + b) * wide +
                                    static_cast<std::int64_t>(i) % wide);
  }

  void make_cell() {
    const std::int64_t h = size_.width, r = unit_.recurrents, l = unit_.late, wide = (r + l) * h;
    const Context& context = case_.context();
    cell_.unit = &unit_;
    cell_.width = h;
    for (int p = 0; p < unit_.states; ++p) {
      starts_.push_back(case_.zeros(size_.batch * h));
      dispatch(context, [&](const auto& backend) {
        kernels::fill(backend, starts_.back().f32(), size_.batch * h, unit_.state_start(p));
      });
    }
    if (unit_.vectors > 0) cell_.vectors = (vectors_ = case_.random(unit_.vectors * h, 7)).f32();
    if (unit_.position_vectors > 0) {
      cell_.positions =
          (positions_ = case_.random(size_.steps * unit_.position_vectors * h, 8)).f32();
      cell_.position_rows = size_.steps;
    }
    if (wide == 0) return;
    weights_ = Case::values(h * wide, 6);
    for (float& w : weights_) w *= 1.0f / std::sqrt(static_cast<float>(h));
    const Tensor plain = upload(context, weights_, {h * wide});
    const auto pack = [&](bool transpose, std::int64_t first, std::int64_t planes,
                          Tensor& packed) -> float* {
      if (planes == 0) return nullptr;
      const std::int64_t k = transpose ? planes * h : h, n = transpose ? h : planes * h;
      packed = context.empty({kernels::packed_size(context.cpu, k, n)});
      dispatch(context, [&](const auto& backend) {
        kernels::pack(backend, transpose, k, n, plain.f32() + first * h, wide, packed.f32());
      });
      return packed.f32();
    };
    cell_.recurrent = static_cast<const float*>(pack(false, 0, r, packed_[0]));
    cell_.late = static_cast<const float*>(pack(false, r, l, packed_[1]));
    cell_.recurrent_transposed = pack(true, 0, r, packed_[2]);
    cell_.late_transposed = pack(true, r, l, packed_[3]);
    if (unit_.bias) cell_.bias = (bias_ = case_.random(wide, 9)).f32();
  }

  // All memory is written before timing, since the first access to a page causes a page fault.
  Buffers make_buffers() {
    const Context& context = case_.context();
    const std::int64_t n = size_.elements(), r = unit_.recurrents, l = unit_.late;
    Buffers b;
    b.x = upload(context, x_, {n * unit_.inputs});
    for (int p = 0; p < unit_.states; ++p) b.states[p] = case_.zeros(n);
    if (r > 0) b.u = case_.zeros(n * r);
    if (l > 0) b.late = case_.zeros(n * l), b.late_value = case_.zeros(n);
    const auto copy = [&](std::int64_t planes) -> Tensor {
      if (planes == 0) return {};
      return allocate_rounded(context, {size_.rows(), planes * size_.width});
    };
    b.states_rounded = copy(r > 0 ? 1 : 0);
    b.late_value_rounded = copy(l > 0 ? 1 : 0);
    if (!backward_) return b;
    b.dh = upload(context, dh_, {n});
    b.dx = case_.zeros(n * unit_.inputs);
    if (r > 0) b.du = case_.zeros(n * r);
    if (l > 0) b.dlate = case_.zeros(n * l);
    b.du_rounded = copy(r);
    b.dlate_rounded = copy(l);
    for (int p = 0; p < unit_.states; ++p) b.dinitial[p] = case_.zeros(size_.batch * size_.width);
    if (vectors_) b.dvectors = case_.zeros(vectors_.elements());
    if (positions_) b.dpositions = case_.zeros(positions_.elements());
    dispatch(context, [&](const auto& backend) {
      b.scratch =
          context.empty({std::max<std::int64_t>(1, kernels::recurrence_scratch(backend, view(b)))});
      kernels::recurrence_forward(backend, view(b));
    });
    return b;
  }

  kernels::Recurrence view(const Buffers& b) const {
    kernels::Recurrence a;
    a.cell = cell_;
    a.steps = size_.steps;
    a.batch = size_.batch;
    a.x = b.x.f32();
    for (int p = 0; p < unit_.states; ++p) {
      a.initial[p] = starts_[static_cast<std::size_t>(p)].f32();
      a.states[p] = b.states[p].f32();
    }
    a.record.u = pointer(b.u);
    a.record.late = pointer(b.late);
    a.record.late_value = pointer(b.late_value);
    a.record.late_value_rounded = copy_of(b.late_value_rounded);
    a.states_rounded = copy_of(b.states_rounded);
    return a;
  }

  kernels::RecurrenceGradient gradient(const Buffers& b) const {
    kernels::RecurrenceGradient g;
    g.dh = b.dh.f32();
    for (int p = 0; p < unit_.states; ++p) g.dinitial[p] = b.dinitial[p].f32();
    g.cell.dx = b.dx.f32();
    g.cell.du_rounded = copy_of(b.du_rounded);
    g.cell.dlate_rounded = copy_of(b.dlate_rounded);
    g.cell.du = pointer(b.du);
    g.cell.dlate = pointer(b.dlate);
    g.cell.dvectors = pointer(b.dvectors);
    g.cell.dpositions = pointer(b.dpositions);
    g.scratch = b.scratch.f32();
    return g;
  }

  SentenceRecurrence sentence_of(std::int64_t b) const {
    SentenceRecurrence s;
    s.unit = place_;
    s.steps = size_.steps;
    s.width = size_.width;
    s.x.resize(static_cast<std::size_t>(size_.steps * unit_.inputs * size_.width));
    for (std::size_t i = 0; i < s.x.size(); ++i) s.x[i] = x_[place_of(b, i, unit_.inputs)];
    s.recurrent = doubles(weights_);
    if (bias_) s.bias = doubles(case_.read(bias_));
    if (vectors_) s.vectors = doubles(case_.read(vectors_));
    if (positions_) s.positions = doubles(case_.read(positions_));
    return s;
  }

  void compare_states(std::int64_t b, const Doubles& expected, double tolerance) const {
    const std::vector<float> h = case_.read(sets_[0].states[0]);
    double scale = 0;
    for (const double v : expected) scale = std::max(scale, std::abs(v));
    for (std::size_t i = 0; i < expected.size(); ++i)
      case_.compare(fmt::format("h[{}] of sentence {}", i, b), h[place_of(b, i, 1)], expected[i],
                    scale, tolerance);
  }

  double objective(SentenceRecurrence s, const Doubles& direction, std::int64_t b,
                   double epsilon) const {
    for (std::size_t i = 0; i < s.x.size(); ++i) s.x[i] += epsilon * direction[i];
    const Doubles h = run_recurrence(s);
    double sum = 0;
    for (std::size_t i = 0; i < h.size(); ++i) sum += dh_[place_of(b, i, 1)] * h[i];
    return sum;
  }

  Case& case_;
  std::size_t place_;
  const kernels::Unit& unit_;
  Size size_;
  bool backward_;
  kernels::Cell cell_;
  std::vector<float> x_, dh_, weights_;
  std::vector<Tensor> starts_;  // the initial states
  Tensor vectors_, positions_, bias_, packed_[4];
  std::vector<Buffers> sets_;
  std::size_t next_ = 0;
};

void add_rows(Bench& bench, std::size_t unit, const Size& size, const char* path) {
  const kernels::Unit& u = kernels::units()[unit];
  for (const bool backward : {false, true})
    bench.row(
        "recurrences",
        fmt::format("{}{}{}{} {} T {} B {} H {}", u.name, *u.variant ? " " : "", u.variant, path,
                    backward ? "backward" : "forward", size.steps, size.batch, size.width),
        [&](Case& c) {
          RecurrenceCase recurrence(c, unit, size, backward);
          recurrence.check();
          recurrence.count();
          c.time([&] { recurrence.run(); });
        });
}

// Whether a unit declares that its state is linear in the state before.
bool is_linear(std::size_t unit) {
  using namespace units;
  static constexpr bool table[] = {
#define NMT_UNIT(name, variant, ...) linear_state_of<__VA_ARGS__> >= 0,
#include "units/units.def"
#undef NMT_UNIT
  };
  return table[unit];
}

// A few long sentences with and without chunks. The first unit has the sizes around which chunks
// begin to pay, which do not depend much on the unit; the others have one.
void add_long_rows(Bench& bench, CudaDevice& device, std::size_t unit, bool is_first_unit) {
  std::vector<Size> sizes{{2048, 1, 1024}};
  if (is_first_unit)
    sizes = {{128, 1, 1024}, {512, 1, 1024}, {2048, 1, 1024}, {512, 8, 1024}, {2048, 32, 1024}};
  if (bench.options().quick) sizes = {{128, 1, 8}};
  for (const Size& size : sizes) {
    add_rows(bench, unit, size, "");
    device.set_chunks(false);
    add_rows(bench, unit, size, " undivided");
    device.set_chunks(true);
  }
}

// Whether the device runs a unit persistently in both passes.
bool persists(Bench& bench, std::size_t unit, const Size& size) {
  const std::unique_ptr<Arena> arena = bench.compute().new_arena();
  const kernels::CellShape shape{&kernels::units()[unit], size.width};
  return dispatch(bench.compute().context(*arena), [&](const auto& backend) {
    return kernels::why_not_persistent(backend, shape, size.batch, false).empty() &&
           kernels::why_not_persistent(backend, shape, size.batch, true).empty();
  });
}

}  // namespace

void recurrences(Bench& bench) {
  CudaDevice* const device = bench.compute().cuda();
  const Size size = bench.options().quick ? Size{5, 9, 24}
                    : device              ? Size{32, 128, 1024}
                                          : Size{32, 64, 512};
  bool is_first_linear = true;
  for (std::size_t unit = 0; unit < kernels::units().size(); ++unit) {
    add_rows(bench, unit, size, "");
    if (device && is_linear(unit)) {
      add_long_rows(bench, *device, unit, is_first_linear);
      is_first_linear = false;
    }
    if (!device && !kernels::units()[unit].has_recurrent_product() && !bench.options().quick) {
      // A few long sentences: threads share the channels. The first linear unit has other lengths,
      // too.
      add_rows(bench, unit, {2048, 1, size.width}, "");
      if (is_linear(unit) && is_first_linear) {
        add_rows(bench, unit, {512, 1, size.width}, "");
        add_rows(bench, unit, {8192, 1, size.width}, "");
        is_first_linear = false;
      }
    }
    if (!device || !kernels::units()[unit].has_recurrent_product()) continue;
    // Both paths of matrix units, and a width for which the persistent one is predicted to be the
    // faster one (cuda/kernels/recurrent/persistent/table.h).
    const Size half{size.steps, size.batch, size.width / 2};
    if (!bench.options().quick) add_rows(bench, unit, half, "");
    const PersistentUse before = device->persistent();
    device->set_persistent(PersistentUse::on);
    for (const Size& of : {size, half})
      if (persists(bench, unit, of)) add_rows(bench, unit, of, " persistent");
    device->set_persistent(before);
  }
}

}  // namespace nmt::app::bench
