#include "core/threads/thread_pool.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product_method.h"
#include "tests/kernels/guarded_memory.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <sys/time.h>

namespace nmt::kernels {
namespace {

std::atomic<int> handled{0};

void handle(int) {
  volatile char stack[512];
  for (char volatile& byte : stack) byte = 1;
  ++handled;
}

// Products under a timer that interrupts them; the buffers of each are freed, so that a corrupt
// heap ends the process. Status 0: every value is right.
int interrupted_products(const ProductMethod& library) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 50}, {0, 50}}, never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  ThreadPool pool(1);
  bool right = true;
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t m = 32 + round % 200, n = 200, k = 600 + round % 7 * 8;
    const bool transposed = round % 2;
    const test::Guarded<float> a(static_cast<std::size_t>(m * k), 1.0f),
        b(static_cast<std::size_t>(k * n), 1.0f);
    test::Guarded<float> c(static_cast<std::size_t>(m * n));
    gemm({&pool, &library}, transposed, false, m, n, k, a.data(), transposed ? m : k, b.data(), n,
         0.0f, c.data(), n);
    for (const float value : c) right &= value == static_cast<float>(k);
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  return right && handled > 100 ? 0 : 1;
}

TEST(ProductMethod, SurvivesSignals) {
  std::string why;
  const ProductMethod* const library = ProductMethod::one_dnn(&why);
  if (!library) GTEST_SKIP() << why;
  EXPECT_EXIT(std::_Exit(interrupted_products(*library)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace nmt::kernels
