#include "app/benchmark/tables/tables.h"
#include "kernels/recurrent/matrix_scan.h"
#include "kernels/recurrent/matrix_state.h"
#include "units/all.h"

#include <array>
#include <vector>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

using kernels::MatrixGradient;
using kernels::MatrixRecurrence;
using Doubles = std::vector<double>;

struct Size {
  std::int64_t steps, batch, width, heads;
  int state_width;
};

// All heads of one sentence in double.
template <class U>
void scan(const kernels::BasicMatrixRecurrence<double>& a,
          const kernels::BasicMatrixGradient<double>* g, double* sums, double* scratch) {
  for (std::int64_t head = 0; head < a.heads; ++head) {
    kernels::MatrixScan<double, U> pass(a, 0, head);
    if (g)
      pass.backward(*g, sums, scratch);
    else
      pass.forward();
  }
}
constexpr std::array scans = {
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(name, variant, ...) scan<units::__VA_ARGS__>,
#include "units/units.def"
#undef NMT_UNIT
};

// Inputs and outputs of one run; a row rotates several.
struct Buffers {
  Tensor x, shared, h, memory, record, checkpoints;
  Tensor dh, dx, dshared, dvectors, drows, scratch;  // backward
};

class MatrixCase {
 public:
  MatrixCase(Case& a_case, std::size_t unit, const Size& size, bool backward)
      : case_(a_case), place_(unit), size_(size), backward_(backward) {
    a_.unit = &kernels::matrix_state_units()[unit];
    a_.steps = size.steps;
    a_.batch = size.batch;
    a_.width = size.width;
    a_.heads = size.heads;
    a_.state_width = size.state_width;
    rows_ = size.steps * size.batch;
    x_ = Case::values(rows_ * inputs(), 3);
    shared_ = Case::values(rows_ * a_.shared_width(), 4);
    dh_ = Case::values(rows_ * size.width, 5);
    vectors_ = case_.random(std::max<std::int64_t>(1, vectors()), 6);
    trained_ = case_.random(std::max<std::int64_t>(1, trained()), 7);
    h_before_ = case_.zeros(size.batch * size.width);
    memory_before_ = case_.zeros(size.batch * a_.memory_width());
    const std::size_t one = sizeof(float) * (x_.size() + shared_.size() + dh_.size());
    for (int i = 0; i < case_.sets(one); ++i) sets_.push_back(make_buffers());
  }

  void run() {
    const Buffers& b = sets_[next_++ % sets_.size()];
    dispatch(case_.context(), [&](const auto& backend) {
      if (backward_)
        kernels::matrix_backward(backend, view(b), gradient(b));
      else
        kernels::matrix_forward(backend, view(b));
    });
  }

  // Compares h of one sentence with the scan in double and, for the backward pass, the sum of dx
  // times a direction. (The parity tests compare the other gradients.)
  void check() {
    run();
    const std::int64_t b = size_.batch / 2;
    Sentence one(*this, b);
    scans[place_](one.a, nullptr, nullptr, nullptr);
    const auto compare = [&](const char* what, const Tensor& tensor, std::int64_t width,
                             const Doubles& expected) {
      const Doubles direction = doubles(Case::values(size_.steps * width, 8));
      const std::vector<float> values = case_.read(tensor);
      double found = 0, sum = 0, scale = 0;
      for (std::int64_t t = 0; t < size_.steps; ++t)
        for (std::int64_t i = 0; i < width; ++i) {
          const auto from = static_cast<std::size_t>((t * size_.batch + b) * width + i),
                     to = static_cast<std::size_t>(t * width + i);
          found += values[from] * direction[to];
          sum += expected[to] * direction[to];
          scale += std::abs(expected[to]);
        }
      case_.compare(what, found, sum, scale, 2e-5);
    };
    compare("the sum of h times a direction", sets_[0].h, size_.width, one.h);
    if (!backward_) return;
    scans[place_](one.a, &one.g, one.sums.data(), one.scratch.data());
    compare("the sum of dx times a direction", sets_[0].dx, inputs(), one.dx);
  }

  // Operations on the states, and the traffic of x, of the heads' vectors, of h and of the states
  // that training keeps; backward also that of the gradients.
  void count() {
    const double n = static_cast<double>(rows_), width = static_cast<double>(size_.width),
                 states = width * size_.state_width,
                 read = static_cast<double>(inputs() + a_.shared_width());
    case_.work((backward_ ? 16 : 5) * n * states,
               4 * n * ((backward_ ? 2 : 1) * read + width + states / kernels::matrix_stride));
  }

 private:
  // One sentence in double.
  struct Sentence {
    kernels::BasicMatrixRecurrence<double> a;
    kernels::BasicMatrixGradient<double> g;
    Doubles x, shared, vectors, rows, h_before, memory_before, h, memory, record, checkpoints;
    Doubles dh, dx, dshared, dh_before, dmemory, sums, scratch;

    Sentence(const MatrixCase& of, std::int64_t b) {
      const MatrixRecurrence& all = of.a_;
      const auto room = [](std::int64_t n) { return Doubles(static_cast<std::size_t>(n)); };
      x = of.sentence(of.x_, b, of.inputs());
      shared = of.sentence(of.shared_, b, all.shared_width());
      dh = of.sentence(of.dh_, b, all.width);
      vectors = doubles(of.case_.read(of.vectors_));
      rows = doubles(of.case_.read(of.trained_));
      h_before = room(all.width);
      memory_before = room(all.memory_width());
      memory = dmemory = memory_before;
      h = room(all.steps * all.width);
      MatrixRecurrence single = all;
      single.batch = 1;
      record = scratch = room(kernels::matrix_record(Cpu{}, single));
      checkpoints = room(of.kept() * all.state_width * all.width);
      dx = room(all.steps * of.inputs());
      dshared = room(all.steps * all.shared_width());
      dh_before = room(all.width);
      sums = room(of.vectors() + of.trained());
      a.unit = all.unit;
      a.steps = all.steps;
      a.batch = 1;
      a.width = all.width;
      a.heads = all.heads;
      a.state_width = all.state_width;
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
      g.dh = dh.data();
      g.dx = dx.data();
      g.dshared = dshared.data();
      g.dh_before = dh_before.data();
      g.dmemory_before = dmemory.data();
    }
  };

  static Doubles doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }
  std::int64_t inputs() const { return a_.unit->inputs * size_.width; }
  std::int64_t vectors() const { return a_.unit->vectors * size_.width; }
  std::int64_t trained() const {
    return a_.unit->matrix_state->rows * size_.state_width * size_.width;
  }
  std::int64_t kept() const {
    return (size_.steps + kernels::matrix_stride - 1) / kernels::matrix_stride;
  }
  // The [T,width] of a sentence, from [T,B,width].
  Doubles sentence(const std::vector<float>& all, std::int64_t b, std::int64_t width) const {
    Doubles to;
    for (std::int64_t t = 0; t < size_.steps; ++t) {
      const auto from = all.begin() + (t * size_.batch + b) * width;
      to.insert(to.end(), from, from + width);
    }
    return to;
  }

  // All memory is written before timing, since the first access to a page causes a page fault.
  Buffers make_buffers() {
    const Context& context = case_.context();
    Buffers b;
    b.x = upload(context, x_, {rows_ * inputs()});
    b.shared = upload(context, shared_, {rows_ * a_.shared_width()});
    b.h = case_.zeros(rows_ * size_.width);
    b.memory = case_.zeros(size_.batch * a_.memory_width());
    b.checkpoints = case_.zeros(kept() * size_.batch * size_.state_width * size_.width);
    dispatch(context, [&](const auto& backend) {
      b.record = case_.zeros(kernels::matrix_record(backend, a_));
    });
    if (!backward_) return b;
    b.dh = upload(context, dh_, {rows_ * size_.width});
    b.dx = case_.zeros(rows_ * inputs());
    b.dshared = case_.zeros(rows_ * a_.shared_width());
    b.dvectors = case_.zeros(std::max<std::int64_t>(1, vectors()));
    b.drows = case_.zeros(std::max<std::int64_t>(1, trained()));
    dispatch(context, [&](const auto& backend) {
      b.scratch = case_.zeros(kernels::matrix_scratch(backend, a_));
      kernels::matrix_forward(backend, view(b));
    });
    return b;
  }

  MatrixRecurrence view(const Buffers& b) const {
    MatrixRecurrence a = a_;
    a.x = b.x.f32();
    a.shared = b.shared.f32();
    a.vectors = vectors_.f32();
    a.rows = trained_.f32();
    a.h_before = h_before_.f32();
    a.memory_before = memory_before_.f32();
    a.h = b.h.f32();
    a.memory = b.memory.f32();
    a.record = b.record.f32();
    a.checkpoints = b.checkpoints.f32();
    return a;
  }
  MatrixGradient gradient(const Buffers& b) const {
    MatrixGradient g;
    g.dh = b.dh.f32();
    g.dx = b.dx.f32();
    g.dshared = b.dshared.f32();
    g.dvectors = b.dvectors.f32();
    g.drows = b.drows.f32();
    g.scratch = b.scratch.f32();
    return g;
  }

  Case& case_;
  std::size_t place_;
  Size size_;
  bool backward_;
  MatrixRecurrence a_;
  std::int64_t rows_ = 0;
  std::vector<float> x_, shared_, dh_;
  Tensor vectors_, trained_, h_before_, memory_before_;
  std::vector<Buffers> sets_;
  std::size_t next_ = 0;
};

void add_rows(Bench& bench, std::size_t unit, const Size& size, const char* path) {
  for (const bool backward : {false, true})
    bench.row("matrix-states",
              fmt::format("{}{} {} T {} B {} H {} heads {} K {}",
                          kernels::matrix_state_units()[unit].name, path,
                          backward ? "backward" : "forward", size.steps, size.batch, size.width,
                          size.heads, size.state_width),
              [&](Case& c) {
                MatrixCase scan(c, unit, size, backward);
                scan.check();
                scan.count();
                c.time([&] { scan.run(); });
              });
}

}  // namespace

void matrix_states(Bench& bench) {
  CudaDevice* const device = bench.compute().cuda();
  const bool quick = bench.options().quick;
  const std::int64_t width = quick ? 24 : device ? 1024 : 512;
  const Size batch{quick ? 5 : 32, quick ? 9 : 64, width, 4, 16},
      document{quick ? 128 : 2048, 1, width, 4, 16};
  for (std::size_t unit = 0; unit < kernels::matrix_state_units().size(); ++unit) {
    add_rows(bench, unit, batch, "");
    // A long sentence, on a GPU with and without chunks of steps.
    add_rows(bench, unit, document, "");
    if (!device) {
      // Threads share the tiles of a single head.
      add_rows(bench, unit, {document.steps, 1, width, 1, 16}, "");
      continue;
    }
    device->set_chunks(false);
    add_rows(bench, unit, document, " undivided");
    device->set_chunks(true);
  }
}

}  // namespace nmt::app::bench
