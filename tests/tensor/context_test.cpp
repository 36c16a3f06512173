#include "tensor/context.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(Context, IsOfTheCpuWithoutADevice) {
  ThreadPool pool(1);
  Arena arena;
  const Context made = make_context(arena, {&pool}), plain;
  for (const Context& context : {made, plain}) {
    EXPECT_EQ(context.backend, &cpu_backend);
    EXPECT_EQ(context.device, Device{});
    EXPECT_EQ(context.cudnn, nullptr);
  }
  EXPECT_EQ(made.arena, &arena);
  EXPECT_EQ(made.cpu.pool, &pool);
  EXPECT_TRUE(made.empty({2, 3}).in_host_memory());
}

TEST(Context, TakesCudnnWithADeviceAlone) {
  Arena arena;
  const auto* const some = reinterpret_cast<const kernels::Cudnn*>(&arena);  // never called
  EXPECT_THROW(make_context(arena, {}, nullptr, some), Error);
}

}  // namespace
}  // namespace nmt
