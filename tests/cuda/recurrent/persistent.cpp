// Persistent recurrences against the CPU, where every step is a product and a point-wise step.

#include "tests/cuda/recurrent/loop.h"

#include <cstdlib>
#include <string_view>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

// body(unit) for the units with a product of the state or of a late value.
template <class Body>
void each_recurrent(Body&& body) {
  for (const Unit& unit : units())
    if (unit.has_recurrent_product()) body(unit);
}

// Why a cell on a device cannot be persistent, beside its unit.
void check_refusals(Parity& p) {
  p.sizes("refusals");
  const Unit* gru = nullptr;
  each_recurrent([&](const Unit& unit) {
    if (std::string_view(unit.name) == "gru") gru = &unit;
  });
  CellShape cell;
  cell.unit = gru;
  cell.width = 64;
  const auto why = [&](Precision precision) {
    CudaDevice device(p.device_index(), precision);
    return why_not_persistent(device.handle(), cell, 1, true);
  };
  EXPECT_EQ(why(Precision::float32), "");
  EXPECT_EQ(why(Precision::tf32), "precision tf32");
  cell.groups = 4;
  EXPECT_EQ(why(Precision::float32), "");
  cell.rearrange = true;
  EXPECT_EQ(why(Precision::float32), "");
  cell.rearrange = false;
  cell.groups = 1;
  cell.normalizes = true;
  EXPECT_EQ(why(Precision::float32), "");
  cell.width = 65536;
  EXPECT_NE(why(Precision::float32).find("width 65536 does not fit into the shared memory"),
            std::string::npos);
  cell.unit = &units().front();
  EXPECT_EQ(why(Precision::float32), "the unit has no recurrent product");
  EXPECT_EQ(why_not_persistent(p.cpu(), cell, 1, true), "the CPU");
}

void check_persistent_units(Parity& p) {
  each_recurrent([&](const Unit& unit) {
    const CellSizes cell{.unit = &unit, .width = 33, .positions = 3};
    for (const bool reverse : {false, true})
      check(p, cell,
            {.steps = 9,
             .batch = 3,
             .reverse = reverse,
             .position = 1,
             .persistent = true,
             .max_channels = 7});
    check(p, {.unit = &unit, .width = 26, .normal = true},
          {.steps = 4, .batch = 5, .persistent = true, .max_channels = 7});
    check(p, {.unit = &unit, .width = 24, .groups = 3, .dropout = true},
          {.steps = 4, .batch = 5, .persistent = true, .max_channels = 3});
    for (const bool normal : {false, true})
      check(p,
            {.unit = &unit,
             .width = 24,
             .groups = 3,
             .rearrange = true,
             .normal = normal,
             .dropout = !normal},
            {.steps = 4, .batch = 5, .persistent = true, .max_channels = 3});
  });
}

void check_persistent_sizes(Parity& p) {
  each_recurrent([&](const Unit& unit) {
    const std::string_view name = unit.name, variant = unit.variant;
    if (name == "atr" && variant != "forget-gate=released input-gate=own") return;
    for (const std::int64_t batch : {1, 33})
      check(p, {.unit = &unit, .width = 20},
            {.steps = 2, .batch = batch, .mask = false, .persistent = true, .max_channels = 8});
    check(p, {.unit = &unit, .width = 1}, {.steps = 3, .batch = 2, .persistent = true});
    check(p, {.unit = &unit, .width = 21, .groups = 3, .normal = true},
          {.steps = 3, .batch = 37, .reverse = true, .persistent = true, .max_channels = 4});
    check(p, {.unit = &unit, .width = 36, .groups = 2},
          {.steps = 3, .batch = 2, .reverse = true, .persistent = true});
  });
  // More k than are staged at a time, more sentences than a tile has, blocks without a
  // neighbor; a single step takes the other path.
  each_recurrent([&](const Unit& unit) {
    if (std::string_view(unit.name) == "gru")
      check(p, {.unit = &unit, .width = 132},
            {.steps = 2, .batch = 3, .mask = false, .persistent = true});
  });
  const Unit& lstm = *std::ranges::find_if(units(), [](const Unit& u) {
    return std::string_view(u.name) == "lstm" && u.recurrents > 0;
  });
  check(p, {.unit = &lstm, .width = 5},
        {.steps = 3, .batch = 67, .persistent = true, .max_channels = 2});
  check(p, {.unit = &lstm, .width = 20}, {.steps = 1, .batch = 3, .persistent = true});
}

void check_persistent_slices(Parity& p) {
  // More slices than a warp has lanes, on an emulated device that holds as many blocks; and
  // several tiles of rows in a block. Blocks exchange the statistics of each row.
  const auto run = [&](const Unit& unit, std::int64_t width, std::int64_t batch) {
    check(p, {.unit = &unit, .width = width, .normal = true},
          {.steps = 2, .batch = batch, .persistent = true, .max_channels = 1});
  };
  setenv("NMT_EMULATED_MULTIPROCESSORS", "6", 1);
  each_recurrent([&](const Unit& unit) {
    if (std::string_view(unit.name) != "atr") run(unit, 40, 2);
  });
  unsetenv("NMT_EMULATED_MULTIPROCESSORS");
  each_recurrent([&](const Unit& unit) {
    if (std::string_view(unit.name) != "atr") run(unit, 12, 70);
  });
}

void check_persistent_forward_or_backward(Parity& p) {
  // As `auto` may choose: each pass reads what the other kind of pass has recorded.
  using Passes = RecurrenceSizes::Passes;
  for (const Passes passes : {Passes::forward, Passes::backward})
    each_recurrent([&](const Unit& unit) {
      for (const bool normal : {false, true})
        check(p, {.unit = &unit, .width = 26, .normal = normal},
              {.steps = 4,
               .batch = 5,
               .reverse = normal,
               .persistent = true,
               .max_channels = 7,
               .passes = passes});
      for (const bool rearrange : {false, true})
        check(p,
              {.unit = &unit,
               .width = 24,
               .groups = 3,
               .rearrange = rearrange,
               .normal = rearrange,
               .dropout = true},
              {.steps = 4,
               .batch = 5,
               .reverse = rearrange,
               .persistent = true,
               .max_channels = 3,
               .passes = passes});
    });
}

void check_persistent_inference(Parity& p) {
  each_recurrent([&](const Unit& unit) {
    for (const bool rearrange : {false, true})
      check(p, {.unit = &unit, .width = 20, .groups = 2, .rearrange = rearrange},
            {.steps = 3, .batch = 3, .backward = false, .persistent = true, .max_channels = 4});
  });
}

}  // namespace

std::vector<ParityRow> persistent_parity() {
  return {
      {"persistent_refusals", check_refusals},
      {"persistent_units", check_persistent_units},
      {"persistent_sizes", check_persistent_sizes},
      {"persistent_slices", check_persistent_slices},
      {"persistent_forward_or_backward", check_persistent_forward_or_backward},
      {"persistent_inference", check_persistent_inference},
  };
}

}  // namespace nmt::test
