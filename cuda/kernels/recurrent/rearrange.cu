#include "cuda/kernels/elementwise.h"
#include "kernels/recurrent/rearrange.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void rearrange(const Cuda& cuda, std::int64_t rows, std::int64_t groups, std::int64_t width,
               const float* x, float* y) {
  const std::int64_t part = width / groups;
  each(cuda, rows * width, [=] __device__(std::int64_t i) {
    const std::int64_t r = i / width, to = i % width;
    y[i] = x[r * width + to % groups * part + to / groups];
  });
}

void rearrange_back(const Cuda& cuda, std::int64_t rows, std::int64_t groups, std::int64_t width,
                    const float* dy, bool accumulate, float* dx) {
  const std::int64_t part = width / groups;
  each(cuda, rows * width, [=] __device__(std::int64_t i) {
    const std::int64_t r = i / width, from = i % width;
    const float d = dy[r * width + from % part * groups + from / part];
    dx[i] = accumulate ? dx[i] + d : d;
  });
}

}  // namespace nmt::kernels
