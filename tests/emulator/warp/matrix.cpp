#include "warp/matrix.h"

#include <cmath>
#include <cstdint>

namespace nmt::emulator {
namespace {

float from_bits(unsigned bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

// The figures of the PTX manual: "Matrix Fragments for mma.m16n8k16 with floating point type".
void run_matrix_operation(const std::array<const MatrixOperation*, warp_size>& lanes) {
  float a[16][16], b[16][8];
  const auto number = [](const unsigned* pairs, int i) {
    return from_bits(pairs[i / 2] >> i % 2 * 16 & 0xFFFF);
  };
  for (int lane = 0; lane < warp_size; ++lane) {
    const MatrixOperation& of_lane = *lanes[static_cast<std::size_t>(lane)];
    const int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const bool lower = i / 2 % 2 == 1;
      a[group + (lower ? 8 : 0)][thread * 2 + i % 2 + (i >= 4 ? 8 : 0)] = number(of_lane.a, i);
    }
    for (int i = 0; i < 4; ++i)
      b[thread * 2 + i % 2 + (i >= 2 ? 8 : 0)][group] = number(of_lane.b, i);
  }
  for (int lane = 0; lane < warp_size; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + i % 2;
      float& sum = lanes[static_cast<std::size_t>(lane)]->sum[i];
      for (int k = 0; k < 16; ++k) sum = std::fma(a[row][k], b[k][column], sum);
    }
}

}  // namespace nmt::emulator
