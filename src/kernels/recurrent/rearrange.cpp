#include "kernels/recurrent/rearrange.h"

#include "core/threads/thread_pool.h"

namespace nmt::kernels {
namespace {

// Calls move(grouped channel, rearranged channel) for one row. Common numbers of groups are
// compile-time constants.
template <std::int64_t known, class Move>
void each_channel(std::int64_t any, std::int64_t width, Move&& move) {
  const std::int64_t groups = known > 0 ? known : any, part = width / groups;
  for (std::int64_t j = 0; j < part; ++j)
    for (std::int64_t g = 0; g < groups; ++g) move(g * part + j, j * groups + g);
}

template <class Move>
void each_channel_of(std::int64_t groups, std::int64_t width, Move&& move) {
  switch (groups) {
    case 2: return each_channel<2>(groups, width, move);
    case 4: return each_channel<4>(groups, width, move);
    case 8: return each_channel<8>(groups, width, move);
    default: return each_channel<0>(groups, width, move);
  }
}

constexpr std::int64_t rows_grain = 16;

}  // namespace

void rearrange_rows(std::int64_t rows, std::int64_t groups, std::int64_t width, const float* x,
                    float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += width, y += width)
    each_channel_of(groups, width, [x, y](std::int64_t from, std::int64_t to) { y[to] = x[from]; });
}

void rearrange_back_rows(std::int64_t rows, std::int64_t groups, std::int64_t width,
                         const float* dy, bool accumulate, float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, dy += width, dx += width) {
    if (accumulate)
      each_channel_of(groups, width,
                      [dx, dy](std::int64_t from, std::int64_t to) { dx[from] += dy[to]; });
    else
      each_channel_of(groups, width,
                      [dx, dy](std::int64_t from, std::int64_t to) { dx[from] = dy[to]; });
  }
}

void rearrange(const Cpu& cpu, std::int64_t rows, std::int64_t groups, std::int64_t width,
               const float* x, float* y) {
  cpu.pool->parallel_for(rows, rows_grain, [=](std::int64_t begin, std::int64_t end) {
    rearrange_rows(end - begin, groups, width, x + begin * width, y + begin * width);
  });
}

void rearrange_back(const Cpu& cpu, std::int64_t rows, std::int64_t groups, std::int64_t width,
                    const float* dy, bool accumulate, float* dx) {
  cpu.pool->parallel_for(rows, rows_grain, [=](std::int64_t begin, std::int64_t end) {
    rearrange_back_rows(end - begin, groups, width, dy + begin * width, accumulate,
                        dx + begin * width);
  });
}

}  // namespace nmt::kernels
