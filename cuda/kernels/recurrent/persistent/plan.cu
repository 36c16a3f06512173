#include "cuda/kernels/products/product_operands.h"
#include "cuda/kernels/recurrent/persistent/persistent.h"
#include "cuda/kernels/recurrent/persistent/table.h"

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

namespace nmt::cuda {

using kernels::CellShape;
using kernels::shape_of;

namespace {

// The products of a pass for each channel of a slice.
struct PassShape {
  bool backward;
  std::int64_t columns, depth, late_columns, late_depth;
};

PassShape pass_of(const CellShape& cell, bool backward) {
  const std::int64_t r = cell.unit->recurrents, l = cell.unit->late, n = cell.width / cell.groups;
  if (backward) return {true, r > 0 ? 1 : 0, r * n, l > 0 ? 1 : 0, l * n};
  return {false, r, n, l, n};
}

// Clock cycles that a block is predicted to take for the products of its rows. The L2 cache
// delivers 24 bytes per clock and multiprocessor, half of them overlapped with multiplications. A
// tile waits 800 cycles for its first bytes and 800 cycles for its sums and stores.
template <class Number>
double clocks_of(const SliceLayout& l, std::int64_t rows) {
  if (l.columns == 0) return 0;
  constexpr bool is_float = std::is_same_v<Number, float>;
  const double depth = l.padded_depth, columns = l.padded_columns;
  const auto tiles = static_cast<double>(divide_up(rows, tile_rows));
  // Tensor cores leave out the second half of a tile without sentences.
  const auto computed = static_cast<double>(is_float ? divide_up(rows, tile_rows) * tile_rows
                                                     : divide_up(rows, 16) * 16);
  const double multiply_adds = is_float ? 100 : 800;  // per clock
  const double loads = static_cast<double>(rows) * depth * sizeof(Number) / 24,
               sums = 2 * slice_warps * 4 * computed * columns / 128;
  return 1600 * tiles + loads / 2 + computed * columns * depth / multiply_adds + sums;
}

// The point-wise step, of each channel of a thread.
constexpr double clocks_of_channels = 250;

struct DeviceLimits {
  std::int64_t multiprocessors, blocks;  // blocks of a multiprocessor, by their registers
  std::size_t shared, shared_per_multiprocessor;
  std::int64_t channels;  // of a slice; 0: no limit

  std::int64_t blocks_with(std::size_t bytes) const {
    constexpr std::size_t reserved = 1024;  // of every block
    const auto by_shared =
        static_cast<std::int64_t>(shared_per_multiprocessor / (bytes + reserved));
    return multiprocessors * std::min(blocks, by_shared);
  }
};

// The division of a pass with the lowest cost; none if the weights do not fit.
template <class Number>
std::optional<PersistentPlan> find_plan(const PassShape& shape, std::int64_t groups,
                                        std::int64_t group_width, bool normalizes, bool rearranges,
                                        std::int64_t batch, const DeviceLimits& limits) {
  std::optional<PersistentPlan> best;
  double min_cost = std::numeric_limits<double>::infinity();
  const std::int64_t columns = max_slice_columns<Number>(shape.late_columns > 0, shape.backward);
  std::int64_t max_channels =
      std::min(group_width, columns / std::max(shape.columns, shape.late_columns));
  if (limits.channels > 0) max_channels = std::min(max_channels, limits.channels);
  for (std::int64_t channels = max_channels; channels > 0; --channels) {
    const std::int64_t slices = divide_up(group_width, channels);
    if (divide_up(group_width, slices) != channels) continue;  // fewer channels need as many slices
    PersistentPlan plan;
    plan.recurrent = slice_layout<Number>(shape.columns * channels, shape.depth);
    plan.late = slice_layout<Number>(shape.late_columns * channels, shape.late_depth);
    plan.space = space_bytes<Number>;
    const std::int64_t shared = std::int64_t{plan.recurrent.weight_bytes<Number>()} +
                                plan.late.weight_bytes<Number>() + plan.space +
                                (shape.backward ? 0 : bias_bytes(plan));
    if (shared > static_cast<std::int64_t>(limits.shared)) continue;
    const std::int64_t blocks = limits.blocks_with(static_cast<std::size_t>(shared)),
                       sets = std::min(blocks / (groups * slices), max_counters / groups);
    if (sets == 0) continue;
    const std::int64_t batch_slices = std::min(sets, divide_up(batch, tile_rows)),
                       rows = divide_up(batch, batch_slices);
    plan.groups = static_cast<std::int32_t>(groups);
    plan.group_width = static_cast<std::int32_t>(group_width);
    plan.slices = static_cast<std::int32_t>(slices);
    plan.normalizes = normalizes ? 1 : 0;
    plan.set = static_cast<std::int32_t>(normalizes || rearranges ? groups * slices : slices);
    plan.channels = static_cast<std::int32_t>(channels);
    plan.batch_slices = static_cast<std::int32_t>(divide_up(batch, rows));
    plan.batch_rows = static_cast<std::int32_t>(rows);
    plan.shared = static_cast<std::int32_t>(shared);
    const double waves = static_cast<double>(divide_up(plan.blocks(), limits.multiprocessors));
    const double cost =
        waves *
        (clocks_of<Number>(plan.recurrent, rows) + clocks_of<Number>(plan.late, rows) +
         clocks_of_channels * static_cast<double>(divide_up(rows * channels, slice_threads)));
    if (cost >= min_cost) continue;
    min_cost = cost;
    best = plan;
  }
  return best;
}

std::optional<PersistentPlan> make_plan(const Cuda& cuda, const CellShape& cell, std::int64_t batch,
                                        bool backward) {
  const CudaDevice::State& state = state_of(cuda);
  const bool bfloat16 = packs_bfloat16(cuda);
  const auto resident = [&](std::size_t shared) {
    return backward
               ? persistent_backward_kernels(*cell.unit, bfloat16).backward_blocks(cuda, shared)
               : persistent_kernels(*cell.unit, bfloat16).forward_blocks(cuda, shared);
  };
  const DeviceLimits limits{state.multiprocessors, resident(0) / state.multiprocessors,
                            state.max_shared, state.shared_per_multiprocessor,
                            state.max_slice_channels};
  const PassShape shape = pass_of(cell, backward);
  const std::int64_t n = cell.width / cell.groups;
  std::optional<PersistentPlan> plan =
      bfloat16
          ? find_plan<Bfloat16>(shape, cell.groups, n, cell.normalizes, cell.rearrange, batch,
                                limits)
          : find_plan<float>(shape, cell.groups, n, cell.normalizes, cell.rearrange, batch, limits);
  // The driver decides in the end.
  if (plan && plan->blocks() > resident(static_cast<std::size_t>(plan->shared))) plan.reset();
  return plan;
}

}  // namespace

/// A cache of the plans of a device: every training pass requests its plan several times, and
/// making a plan queries the driver twice.
class PersistentPlans {
 public:
  const std::optional<PersistentPlan>& get(const Cuda& cuda, const CellShape& cell,
                                           std::int64_t batch, bool backward) {
    const Key key{cell.unit,       cell.width, cell.groups, cell.rearrange,
                  cell.normalizes, batch,      backward};
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    if (plans_.size() >= max_plans) plans_.clear();
    return plans_.emplace(key, make_plan(cuda, cell, batch, backward)).first->second;
  }

 private:
  static constexpr std::size_t max_plans = 4096;
  using Key =
      std::tuple<const kernels::Unit*, std::int64_t, std::int64_t, bool, bool, std::int64_t, bool>;
  std::map<Key, std::optional<PersistentPlan>> plans_;
};

namespace {

const std::optional<PersistentPlan>& plan_of(const Cuda& cuda, const CellShape& cell,
                                             std::int64_t batch, bool backward) {
  auto& plans = state_of(cuda).plans;
  if (!plans) plans = {new PersistentPlans, [](PersistentPlans* made) { delete made; }};
  return plans->get(cuda, cell, batch, backward);
}

template <class T>
bool is_aligned(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

PersistentCell describe(const Cuda& cuda, const PersistentPlan& plan, const kernels::Recurrence& a,
                        const UnitSteps& first, bool backward) {
  const Cell& cell = a.cell;
  PersistentCell p;
  p.recurrent = backward ? cell.recurrent_transposed : cell.recurrent.f32;
  p.late = backward ? cell.late_transposed : cell.late.f32;
  p.dropout = cell.dropout;
  p.rearranged = cell.rearrange || cell.dropout ? a.record.rearranged : nullptr;
  p.record_stride = a.keep ? first.stride : 0;
  p.late_value = a.record.late_value;
  if (plan.normalizes)
    p.partial =
        workspace<float>(cuda, a.batch * (cell.unit->recurrents + cell.unit->late) * plan.set * 2);
  p.counters = barrier_counters(cuda);
  const std::int64_t piece = packs_bfloat16(cuda) ? 8 : 4;
  p.aligned = cell.width / cell.groups % piece == 0 && is_aligned(cell.dropout) ? 1 : 0;
  return p;
}

}  // namespace
}  // namespace nmt::cuda

// The one place that decides which recurrences can be persistent.
std::string nmt::kernels::why_not_persistent(const Cuda& cuda, const CellShape& cell,
                                             std::int64_t batch, bool backward) {
  using namespace nmt::cuda;
  const CudaDevice::State& state = state_of(cuda);
  if (!cell.unit->has_recurrent_product()) return "the unit has no recurrent product";
  if (!state.is_cooperative) return "the device has no cooperative launches";
  if (state.precision == Precision::tf32) return "precision tf32";
  if (packs_bfloat16(cuda) && state.compute_capability < 80)
    return fmt::format("bfloat16 on compute capability {}.{}", state.compute_capability / 10,
                       state.compute_capability % 10);
  if (!plan_of(cuda, cell, batch, backward))
    return fmt::format("width {} does not fit into the shared memory of {} multiprocessors",
                       cell.width, state.multiprocessors);
  return "";
}

namespace nmt::cuda {

bool runs_persistently(const Cuda& cuda, const kernels::Recurrence& a, bool backward) {
  const PersistentUse use = state_of(cuda).persistent;
  if (use == PersistentUse::off || a.steps < 2 || a.batch == 0) return false;
  if (use == PersistentUse::automatic &&
      !is_faster_persistently(a.cell, a.batch, packs_bfloat16(cuda), backward))
    return false;
  return kernels::why_not_persistent(cuda, shape_of(a.cell), a.batch, backward).empty();
}

void persistent_forward(const Cuda& cuda, const kernels::Recurrence& a, UnitSteps first) {
  const Cell& cell = a.cell;
  const int r = cell.unit->recurrents;
  PersistentForward p;
  p.plan = plan_of(cuda, shape_of(cell), a.batch, false).value();
  p.cell = describe(cuda, p.plan, a, first, false);
  if (!is_aligned(first.previous[0]) || !is_aligned(first.next[0])) p.cell.aligned = 0;
  const std::int64_t record_row = a.keep && a.reverse ? (a.steps - 1) * a.batch : 0;
  set_parameters(cell, a.record, record_row, first);
  first.u_bias = cell.bias;
  first.late_bias = cell.bias && cell.unit->late > 0 ? cell.bias + r * cell.width : nullptr;
  p.cell.rearranged = part(p.cell.rearranged, record_row, cell.width);
  p.cell.late_value = part(p.cell.late_value, record_row, cell.width);
  p.steps = first;
  persistent_kernels(*cell.unit, packs_bfloat16(cuda)).forward(cuda, p);
}

void persistent_backward(const Cuda& cuda, const kernels::Recurrence& a,
                         const kernels::RecurrenceGradient& g, UnitSteps first,
                         const CellScratch& scratch, float* temporary) {
  const Cell& cell = a.cell;
  const std::int64_t row = a.reverse ? (a.steps - 1) * a.batch : 0;
  PersistentBackward p;
  p.plan = plan_of(cuda, shape_of(cell), a.batch, true).value();
  p.cell = describe(cuda, p.plan, a, first, true);
  p.cell.dlate_value = temporary;
  if (!is_aligned(g.cell.du) || !is_aligned(g.cell.dlate)) p.cell.aligned = 0;
  set_parameters(cell, a.record, row, first);
  set_sums(cell, scratch, first);
  p.steps = first;
  p.gradient = step_gradient(cell, g.cell, row, scratch);
  p.gradient.dh = part(g.dh, row, cell.width);
  std::copy_n(g.dinitial, cell.unit->states, p.gradient.carry);
  persistent_backward_kernels(*cell.unit, packs_bfloat16(cuda)).backward(cuda, p);
}

}  // namespace nmt::cuda
