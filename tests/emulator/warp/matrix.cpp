#include "warp/matrix.h"

#include <cmath>
#include <cstdint>

namespace nmt::emulator {
namespace {

constexpr int side = fragment_side, elements = fragment_elements;

float from_bits(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

const char* check_memory(const MatrixOperation& operation) {
  if (reinterpret_cast<std::uintptr_t>(operation.address) % 32 != 0)
    return "a matrix operation at an address that is no multiple of 32 bytes";
  return operation.stride * operation.size % 16 == 0
             ? nullptr
             : "a matrix operation with rows that are no multiple of 16 bytes apart";
}

}  // namespace

const char* run_matrix_operation(const std::array<const MatrixOperation*, warp_size>& lanes) {
  const MatrixOperation& first = *lanes[0];
  for (const MatrixOperation* lane : lanes)
    if (!lane || lane->kind != first.kind || lane->address != first.address ||
        lane->stride != first.stride)
      return "a matrix operation that differs between lanes";
  if (first.kind == MatrixOperation::memory) return check_memory(first);
  float a[side][side], b[side][side];
  for (int lane = 0; lane < warp_size; ++lane)
    for (int e = 0; e < elements; ++e) {
      const auto [i, k] = fragment_place(FragmentUse::a, lane, e);
      a[i][k] = from_bits(lanes[static_cast<std::size_t>(lane)]->a[e]);
      const auto [kb, j] = fragment_place(FragmentUse::b, lane, e);
      b[kb][j] = from_bits(lanes[static_cast<std::size_t>(lane)]->b[e]);
    }
  for (int lane = 0; lane < warp_size; ++lane)
    for (int e = 0; e < elements; ++e) {
      const auto [i, j] = fragment_place(FragmentUse::accumulator, lane, e);
      const MatrixOperation& of_lane = *lanes[static_cast<std::size_t>(lane)];
      float sum = of_lane.c[e];
      for (int k = 0; k < side; ++k) sum = std::fma(a[i][k], b[k][j], sum);
      of_lane.d[e] = sum;
    }
  return nullptr;
}

}  // namespace nmt::emulator
