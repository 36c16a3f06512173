// Recurrences of units with a matrix state, undivided and in chunks, where all arrays of a pass
// have more than 2^31 elements.

#include "cuda/kernels/recurrent/matrix/scan.h"
#include "dry/large.h"
#include "kernels/recurrent/matrix_state.h"

#include <algorithm>
#include <string>

namespace nmt::test {
namespace {

using kernels::matrix_stride;
using kernels::MatrixGradient;
using kernels::MatrixRecurrence;
using kernels::Unit;

constexpr std::int64_t width = 256, heads = 8, state_width = 16;
// Of a sentence: the numbers of its states, the fewest of all arrays.
constexpr std::int64_t states = state_width * width;
// The backward pass computes states again, those of `matrix_stride` steps of a tile at a time.
constexpr std::int64_t segment_numbers = (matrix_stride + 1) * states;
// The last block that runs is at 95 %.
constexpr std::int64_t batch = (std::int64_t{1} << 31) / 8 * 9 / states + 1;

class LargeMatrixStates : public LargeShapes {
 protected:
  // use(recurrence) for each unit, whose arrays are all zeros; memory is freed after each.
  template <class Use>
  void each_unit(std::int64_t steps, Use use) {
    for (const Unit& unit : kernels::matrix_state_units()) {
      SCOPED_TRACE(unit.name);
      MatrixRecurrence a;
      a.unit = &unit;
      a.steps = steps;
      a.batch = batch;
      a.width = width;
      a.heads = heads;
      a.state_width = state_width;
      in = make(batch *
                std::max({steps * std::max(unit.inputs * width, a.shared_width()),
                          record_numbers(a), a.memory_width(), steps / matrix_stride * states}));
      a.x = a.shared = a.vectors = a.rows = a.h_before = a.memory_before = in;
      a.h = a.memory = a.record = a.checkpoints = read();
      use(a);
      release();
    }
  }
  float* read() const { return const_cast<float*>(in); }
  // Of a sentence.
  static std::int64_t record_numbers(const MatrixRecurrence& a) {
    const kernels::MatrixState& state = *a.unit->matrix_state;
    return a.steps * heads * (3 * state_width + state.extras + state.head_memory(state_width));
  }
  // Numbers that a kernel writes for a sentence; heads whose numbers are not whole sectors share
  // some. Does not clear what has been counted.
  void expect_numbers(const std::string& kernel, std::int64_t numbers) {
    double written = 0;
    for (const auto& [name, work] : dry->work())
      if (name.starts_with(kernel)) written += work.written;
    const double bytes = 4.0 * static_cast<double>(batch * numbers);
    EXPECT_GE(written, 0.97 * bytes) << kernel;
    EXPECT_LE(written, 1.25 * bytes) << kernel;
  }
  // What the passes of a chunk or of all steps write for a sentence.
  void expect_forward(const MatrixRecurrence& a) {
    const std::int64_t last = a.memory_width() - states;  // what the heads remember
    expect_numbers("prepare_kernel", record_numbers(a) + last);
    expect_numbers("scan_kernel", a.steps * width + a.steps / matrix_stride * states + states);
    dry->clear();
  }
  void expect_backward(const MatrixRecurrence& a, std::int64_t chunks) {
    const kernels::MatrixState& state = *a.unit->matrix_state;
    const std::int64_t of_heads = a.steps * heads * (3 * state_width + state.extras),
                       sums = a.unit->vectors * width + state.rows * states;
    expect_numbers("scan_backward_kernel", a.steps * a.unit->inputs * width + of_heads +
                                               chunks * (segment_numbers + sums) + width + states);
    expect_numbers("prepare_backward_kernel",
                   a.steps * a.shared_width() + a.memory_width() - states);
    dry->clear();
  }
  MatrixGradient gradient(const MatrixRecurrence& a) {
    MatrixGradient g;
    g.dh = in;
    g.dx = make(a.steps * batch * a.unit->inputs * width);
    g.dshared = make(a.steps * batch * a.shared_width());
    g.dvectors = g.drows = make(states);
    g.dh_before = make(batch * width);
    g.dmemory_before = make(batch * a.memory_width());
    return g;
  }

  const float* in = nullptr;
};

TEST_F(LargeMatrixStates, Forward) {
  each_unit(16, [&](MatrixRecurrence& a) {
    a.h = make(a.steps * batch * width);
    a.memory = make(batch * a.memory_width());
    a.record = make(kernels::matrix_record(on(), a));
    a.checkpoints = make(a.steps / matrix_stride * batch * states);
    kernels::matrix_forward(on(), a);
    expect_forward(a);
  });
}

TEST_F(LargeMatrixStates, Backward) {
  each_unit(16, [&](MatrixRecurrence& a) {
    MatrixGradient g = gradient(a);
    g.scratch = make(kernels::matrix_scratch(on(), a));
    kernels::matrix_backward(on(), a, g);
    expect_backward(a, 1);
  });
}

// A device divides the steps of few sentences only; here they are many.
cuda::ScanArguments in_chunks(const Cuda& on, const MatrixRecurrence& a) {
  cuda::ScanArguments s = cuda::scan_of(on, a);
  s.length = matrix_stride;
  s.chunks = a.steps / s.length;
  return s;
}

TEST_F(LargeMatrixStates, ForwardInChunks) {
  each_unit(4 * matrix_stride, [&](MatrixRecurrence& a) {
    a.h = make(a.steps * batch * width);
    a.memory = make(batch * a.memory_width());
    a.record = make(batch * record_numbers(a));
    a.checkpoints = make(a.steps / matrix_stride * batch * states);
    cuda::ScanArguments s = in_chunks(on(), a);
    s.states = make(cuda::states_between(s));
    s.factors = make(cuda::factors_between(s));
    const std::int64_t factors = cuda::factors_between(s) / batch;
    cuda::prepare_heads(on(), s);
    cuda::scan_ends(on(), s);
    expect_numbers("ends_kernel", (s.chunks - 1) * states + factors);
    cuda::join_chunks(on(), s);
    expect_numbers("join_", (s.chunks - 1) * states);
    cuda::scan_forward(on(), s);
    expect_forward(a);
    s.a.mask = in;  // of all steps
    cuda::scan_forward(on(), s);
    expect_numbers("passed_outputs_kernel", (a.steps - s.length) * width);
    dry->clear();
  });
}

TEST_F(LargeMatrixStates, BackwardInChunks) {
  each_unit(2 * matrix_stride, [&](MatrixRecurrence& a) {
    const MatrixGradient g = gradient(a);
    cuda::ScanArguments s = in_chunks(on(), a);
    s.states = s.factors = read();
    cuda::MatrixScanScratch scratch{};
    scratch.sums_stride = a.unit->vectors * width + a.unit->matrix_state->rows * states;
    scratch.heads = make(batch * record_numbers(a));
    scratch.segments = make(batch * s.chunks * segment_numbers);
    if (scratch.sums_stride > 0) scratch.sums = make(batch * s.chunks * scratch.sums_stride);
    scratch.carries = make(cuda::states_between(s));
    cuda::scan_backward(on(), s, g, scratch);
    expect_numbers("ends_backward_kernel", (s.chunks - 1) * (states + segment_numbers));
    cuda::prepare_heads_backward(on(), s, g, scratch);
    expect_backward(a, s.chunks);
  });
}

TEST_F(LargeMatrixStates, GradientsBetweenChunks) {
  each_unit(4 * matrix_stride, [&](MatrixRecurrence& a) {
    cuda::ScanArguments s = in_chunks(on(), a);
    s.factors = make(cuda::factors_between(s));
    cuda::join_gradients(on(), s, make(cuda::states_between(s)));
    // Nothing is added to the last one; where factors are matrices, it is not written.
    const bool writes_last = !cuda::has_matrix_factors(*a.unit);
    expect_numbers("join_", (s.chunks - (writes_last ? 1 : 2)) * states);
    dry->clear();
  });
}

}  // namespace
}  // namespace nmt::test
