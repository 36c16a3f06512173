#include "emulator.h"

#include "core/error.h"
#include "dry/dry_run.h"
#include "running.h"

#include <algorithm>
#include <optional>

#include <boost/context/detail/fcontext.hpp>
#include <fmt/format.h>
#include <sys/mman.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace nmt::emulator {

constinit thread_local Running running;

namespace {

namespace context = boost::context::detail;

constexpr std::size_t stack_size = 128 * 1024, guard = 4096;

enum class Wait { none, block_barrier, warp_operation, finished };

// A lane's input and output of a warp operation.
struct WarpOperation {
  enum Kind { barrier, shuffle, ballot } kind = barrier;
  unsigned mask = 0;
  std::source_location at;
  std::uint64_t bits = 0;
  int source = 0;  // the lane that a shuffle reads; out of range: the lane itself
  std::uint64_t result = 0;
};

struct Thread {
  context::fcontext_t where = nullptr;
  char* stack = nullptr;
  Wait wait = Wait::none;
  std::source_location at;  // of the barrier
  WarpOperation operation;
  std::uint32_t warp_epoch = 0;
};

// The running block. The threads' stacks are reused by later blocks.
struct Block {
  std::vector<Thread> threads;  // as many as any block had
  int count = 0;
  Thread* current = nullptr;
  void (*body)(void*) = nullptr;
  void* data = nullptr;
  std::vector<SharedMemory> shared;
  std::size_t dynamic = 0;
  std::optional<std::string> error;
  context::fcontext_t scheduler = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_size = 0;
};
Block block;

dim3 place(std::uint32_t number, const dim3& extent) {
  return {number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

std::string name_of_thread(int number) {
  const dim3 t = place(static_cast<std::uint32_t>(number), blockDim);
  return fmt::format("thread ({},{},{}) of block ({},{},{})", t.x, t.y, t.z, blockIdx.x, blockIdx.y,
                     blockIdx.z);
}

std::string line_of(const std::source_location& at) {
  const std::string file = at.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), at.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

// ---- fibers

#if defined(__SANITIZE_ADDRESS__)
void leaving(void** fake, const void* stack, std::size_t size) {
  __sanitizer_start_switch_fiber(fake, stack, size);
}
void arrived(void* fake, const void** stack, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake, stack, size);
}
#else
void leaving(void**, const void*, std::size_t) {}
void arrived(void*, const void**, std::size_t*) {}
#endif

// Switches to the scheduler; returns when the thread is resumed.
void pause() {
  void* fake = nullptr;
  leaving(block.current->wait == Wait::finished ? nullptr : &fake, block.scheduler_stack,
          block.scheduler_stack_size);
  const context::transfer_t from = context::jump_fcontext(block.scheduler, nullptr);
  arrived(fake, &block.scheduler_stack, &block.scheduler_stack_size);
  block.scheduler = from.fctx;
}

void enter(context::transfer_t from) {
  arrived(nullptr, &block.scheduler_stack, &block.scheduler_stack_size);
  block.scheduler = from.fctx;
  block.body(block.data);
  block.current->wait = Wait::finished;
  pause();
}

void resume(int number) {
  Thread& thread = block.threads[static_cast<std::size_t>(number)];
  block.current = &thread;
  threadIdx = place(static_cast<std::uint32_t>(number), blockDim);
  running.thread = static_cast<std::uint32_t>(number);
  running.warp_epoch = thread.warp_epoch;
  running.stack = {thread.stack, thread.stack + stack_size};
  thread.wait = Wait::none;
  void* fake = nullptr;
  running.in_kernel = true;
  leaving(&fake, thread.stack, stack_size);
  const context::transfer_t from = context::jump_fcontext(thread.where, nullptr);
  arrived(fake, nullptr, nullptr);
  running.in_kernel = false;
  thread.where = from.fctx;
}

void prepare(Thread& thread) {
  if (!thread.stack) {
    void* memory = mmap(nullptr, stack_size + guard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NMT_CHECK(memory != MAP_FAILED && mprotect(memory, guard, PROT_NONE) == 0,
              "emulator: no memory for a thread's stack");
    thread.stack = static_cast<char*>(memory) + guard;
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(thread.stack, stack_size);  // after an aborted launch
#endif
  thread.where = context::make_fcontext(thread.stack + stack_size, stack_size, enter);
  thread.wait = Wait::none;
  thread.warp_epoch = 0;
}

// ---- barriers and warp operations

Thread& thread_at(int number) {
  return block.threads[static_cast<std::size_t>(number)];
}

bool all_at_block_barrier() {
  for (int i = 0; i < block.count; ++i)
    if (thread_at(i).wait != Wait::block_barrier) return false;
  return true;
}

void release_block_barrier() {
  for (int i = 1; i < block.count; ++i)
    if (!same(thread_at(i).at, thread_at(0).at))
      NMT_FAIL("divergent barrier: {} waits at {}, {} at {}", name_of_thread(0),
               line_of(thread_at(0).at), name_of_thread(i), line_of(thread_at(i).at));
  ++running.block_epoch;
  for (int i = 0; i < block.count; ++i) {
    thread_at(i).wait = Wait::none;
    ++thread_at(i).warp_epoch;
  }
}

// Resumes the lanes of a mask when all of them have reached the same operation.
bool release_warp_operation(int first) {
  const WarpOperation& wanted = thread_at(first).operation;
  const int warp = first / warp_size * warp_size;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(wanted.mask >> lane & 1)) continue;
    const int number = warp + lane;
    if (number >= block.count || thread_at(number).wait != Wait::warp_operation) return false;
    const WarpOperation& other = thread_at(number).operation;
    if (other.kind != wanted.kind || other.mask != wanted.mask || !same(other.at, wanted.at))
      NMT_FAIL("divergent warp operation: {} waits at {} with mask {:#x}, {} at {} with mask {:#x}",
               name_of_thread(first), line_of(wanted.at), wanted.mask, name_of_thread(number),
               line_of(other.at), other.mask);
  }
  unsigned votes = 0;
  for (int lane = 0; lane < warp_size; ++lane)
    if ((wanted.mask >> lane & 1) && thread_at(warp + lane).operation.bits) votes |= 1u << lane;
  const unsigned mask = wanted.mask;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(mask >> lane & 1)) continue;
    Thread& thread = thread_at(warp + lane);
    WarpOperation& operation = thread.operation;
    if (operation.kind == WarpOperation::barrier) ++thread.warp_epoch;
    if (operation.kind == WarpOperation::ballot) operation.result = votes;
    if (operation.kind == WarpOperation::shuffle) {
      if (!(mask >> operation.source & 1))
        NMT_FAIL("shuffle: {} reads lane {} at {}, which mask {:#x} leaves out",
                 name_of_thread(warp + lane), operation.source, line_of(operation.at), mask);
      operation.result = thread_at(warp + operation.source).operation.bits;
    }
    thread.wait = Wait::none;
  }
  return true;
}

std::string state_of(int number) {
  const Thread& thread = thread_at(number);
  switch (thread.wait) {
    case Wait::block_barrier: return fmt::format("waits at the barrier of {}", line_of(thread.at));
    case Wait::warp_operation:
      return fmt::format("waits at the warp operation of {} with mask {:#x}",
                         line_of(thread.operation.at), thread.operation.mask);
    case Wait::finished: return "has returned";
    case Wait::none: break;
  }
  return "runs";
}

// Deadlock: names the first thread and the first one that waits for something else.
[[noreturn]] void deadlock() {
  int other = 0;
  for (int i = 1; i < block.count && other == 0; ++i)
    if (state_of(i) != state_of(0)) other = i;
  NMT_FAIL("deadlock: {} {}, {} {}", name_of_thread(0), state_of(0), name_of_thread(other),
           state_of(other));
}

// Runs the block's threads, each to its next stop, until all have returned. The order changes from
// stop to stop, so that results that depend on it change.
void run_block() {
  for (int i = 0; i < block.count; ++i) prepare(thread_at(i));
  for (bool forward = true;; forward = !forward) {
    for (int i = 0; i < block.count; ++i) {
      const int number = forward ? i : block.count - 1 - i;
      if (thread_at(number).wait == Wait::none) resume(number);
      if (block.error) NMT_FAIL("{}", *block.error);
    }
    bool moved = false, finished = true;
    for (int i = 0; i < block.count; ++i) {
      if (thread_at(i).wait == Wait::warp_operation) moved = release_warp_operation(i) || moved;
      finished = finished && thread_at(i).wait == Wait::finished;
    }
    if (finished) return;
    if (all_at_block_barrier()) {
      release_block_barrier();
      moved = true;
    }
    for (int i = 0; i < block.count && !moved; ++i) moved = thread_at(i).wait == Wait::none;
    if (!moved) deadlock();
  }
}

void add_shared(const void* key, std::size_t bytes) {
  SharedMemory memory{key, {}, std::make_unique<char[]>(bytes)};
  memory.region = {memory.data.get(), memory.data.get() + bytes};
  std::memset(memory.data.get(), 0xFF, bytes);
  forget(memory.region);
  block.shared.push_back(std::move(memory));
}

// Cleans up after a launch, also after an exception.
struct Scope {
  OpenDeviceMemory open;
  ~Scope() {
    block.shared.clear();
    running.in_kernel = false;
    block.error.reset();
  }
};

}  // namespace

std::string thread_name() {
  return name_of_thread(static_cast<int>(running.thread));
}

void abort_launch(const std::string& message) {
  block.error = message;
  for (;;) pause();
}

const std::vector<SharedMemory>& shared_memories() {
  return block.shared;
}

namespace {

// The blocks of a launch that run: all, or those of a dry run.
std::vector<std::uint32_t> blocks_to_run(std::uint32_t blocks) {
  std::vector<std::uint32_t> numbers;
  constexpr std::uint32_t sampled = 12;
  if (is_sampled() && blocks > sampled) {
    // At distances that are no multiples of a power of two, as the extents of grids are.
    for (std::uint32_t i = 0; i < sampled; ++i)
      numbers.push_back(static_cast<std::uint32_t>((i + 0.37) / sampled * blocks));
    return numbers;
  }
  for (std::uint32_t i = 0; i < blocks; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

cudaError_t run(const dim3& grid, const dim3& extent, std::size_t shared, void (*thread)(void*),
                void* data) {
  const std::size_t count = std::size_t{extent.x} * extent.y * extent.z;
  if (count == 0 || count > max_threads || shared > max_shared || grid.y > 65535 || grid.z > 65535)
    return cudaErrorInvalidValue;
  NMT_CHECK(!running.in_kernel, "emulator: a kernel cannot launch another");
  const Scope scope;
  if (block.threads.size() < count) block.threads.resize(count);
  block.count = static_cast<int>(count);
  block.body = thread;
  block.data = data;
  blockDim = extent;
  gridDim = grid;
  ++running.launch;
  const std::uint32_t blocks = grid.x * grid.y * grid.z;
  // The launch's data (cuda_runtime.h) begins with the kernel.
  if (is_dry()) begin_dry_launch(*static_cast<const void* const*>(data), blocks);
  for (const std::uint32_t number : blocks_to_run(blocks)) {
    running.block = number;
    if (is_dry()) begin_dry_block();
    blockIdx = place(running.block, grid);
    running.block_epoch = 0;
    block.shared.clear();
    block.dynamic = shared;
    if (shared > 0) add_shared(nullptr, shared);
    run_block();
  }
  if (is_dry()) end_dry_launch();
  return cudaSuccess;
}

void barrier(std::source_location at) {
  block.current->wait = Wait::block_barrier;
  block.current->at = at;
  pause();
}

namespace {

std::uint64_t warp_operation(const WarpOperation& operation) {
  const unsigned lane = running.thread % warp_size;
  if (!(operation.mask >> lane & 1))
    abort_launch(fmt::format("{} is not in the mask {:#x} of its warp operation at {}",
                             thread_name(), operation.mask, line_of(operation.at)));
  Thread& thread = *block.current;
  thread.operation = operation;
  thread.wait = Wait::warp_operation;
  pause();
  return thread.operation.result;
}

}  // namespace

void warp_barrier(unsigned mask, std::source_location at) {
  warp_operation({.kind = WarpOperation::barrier, .mask = mask, .at = at});
}

unsigned ballot(unsigned mask, bool predicate, std::source_location at) {
  return static_cast<unsigned>(
      warp_operation({.kind = WarpOperation::ballot, .mask = mask, .at = at, .bits = predicate}));
}

std::uint64_t shuffle_bits(unsigned mask, std::uint64_t bits, Shuffle kind, int argument, int width,
                           std::source_location at) {
  const int lane = static_cast<int>(running.thread % warp_size), first = lane / width * width;
  int source = lane;
  switch (kind) {
    case Shuffle::from: source = first + argument % width; break;
    case Shuffle::up: source = lane - argument; break;
    case Shuffle::down: source = lane + argument; break;
    case Shuffle::exclusive_or: source = lane ^ argument; break;
  }
  if (source < first || source >= first + width) source = lane;  // the lane keeps its own value
  return warp_operation(
      {.kind = WarpOperation::shuffle, .mask = mask, .at = at, .bits = bits, .source = source});
}

void* shared_memory(const void* key, std::size_t bytes) {
  for (const SharedMemory& memory : block.shared)
    if (memory.key == key) return memory.data.get();
  std::size_t total = bytes;
  for (const SharedMemory& memory : block.shared) total += memory.region.size();
  // A kernel has 48 KB unless it has opted in to more, as launch() does for more dynamic memory.
  if (total > (block.dynamic > 48 * 1024 ? max_shared : 48 * 1024))
    abort_launch(fmt::format(
        "{} bytes of shared memory in a block; a kernel has 48 KB, or {} with dynamic memory",
        total, max_shared));
  add_shared(key, bytes);
  return block.shared.back().data.get();
}

void* dynamic_shared() {
  return shared_memory(nullptr, 0);
}

}  // namespace nmt::emulator
