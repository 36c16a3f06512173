#include "cuda/kernels/elementwise.h"
#include "kernels/recurrent/rearrange.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void rearrange(const Cuda& cuda, std::int64_t rows, std::int64_t groups, std::int64_t width,
               const float* x, float* y) {
  const auto part = static_cast<std::int32_t>(width / groups),
             count = static_cast<std::int32_t>(groups);
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t to) {
    y[row * width + to] = x[row * width + to % count * part + to / count];
  });
}

void rearrange_back(const Cuda& cuda, std::int64_t rows, std::int64_t groups, std::int64_t width,
                    const float* dy, bool accumulate, float* dx) {
  const auto part = static_cast<std::int32_t>(width / groups),
             count = static_cast<std::int32_t>(groups);
  each_of_rows(cuda, rows, width, [=] __device__(std::int64_t row, std::int32_t from) {
    const std::int64_t i = row * width + from;
    const float d = dy[row * width + from % part * count + from / part];
    dx[i] = accumulate ? dx[i] + d : d;
  });
}

}  // namespace nmt::kernels
