#include "emulator.h"

#include "blocks/block.h"
#include "core/error.h"
#include "dry/dry_run.h"
#include "dry/symbols.h"
#include "running.h"
#include "warp/matrix.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace nmt::emulator {

constinit thread_local Running running;
Run run_;

namespace {

namespace context = boost::context::detail;

constexpr std::size_t stack_size = 128 * 1024, guard = 4096;

// Where the stack of a thread begins, below its end. Stacks are pages apart, so their ends would
// share one set of the first-level cache, and each switch of threads would miss it.
std::size_t stack_offset(int number) {
  return static_cast<std::size_t>(number) * 192 % 4096;
}

dim3 coordinates(std::uint32_t number, const dim3& extent) {
  return {number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

}  // namespace

std::string name_of_thread(int number) {
  const dim3 t = coordinates(static_cast<std::uint32_t>(number), blockDim);
  return fmt::format("thread ({},{},{}) of block ({},{},{})", t.x, t.y, t.z, blockIdx.x, blockIdx.y,
                     blockIdx.z);
}

std::string line_of(const std::source_location& at) {
  const std::string file = at.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), at.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// ---- fibers

namespace {

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
  leaving(run_.current->wait == Wait::finished ? nullptr : &fake, run_.scheduler_stack,
          run_.scheduler_stack_size);
  const context::transfer_t from = context::jump_fcontext(run_.scheduler, nullptr);
  arrived(fake, &run_.scheduler_stack, &run_.scheduler_stack_size);
  run_.scheduler = from.fctx;
}

void enter(context::transfer_t from) {
  arrived(nullptr, &run_.scheduler_stack, &run_.scheduler_stack_size);
  run_.scheduler = from.fctx;
  run_.body(run_.data);
  run_.current->wait = Wait::finished;
  pause();
}

void resume(int number) {
  Thread& thread = run_.block->threads[static_cast<std::size_t>(number)];
  run_.current = &thread;
  threadIdx = coordinates(static_cast<std::uint32_t>(number), blockDim);
  running.thread = static_cast<std::uint32_t>(number);
  running.block_epoch = run_.block->epoch;
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

void prepare(int number) {
  Thread& thread = thread_at(number);
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
  const std::size_t size = stack_size - stack_offset(number);
  thread.where = context::make_fcontext(thread.stack + size, size, enter);
  thread.wait = Wait::none;
  thread.warp_epoch = 0;
}

// ---- barriers and warp operations

}  // namespace

void next_epoch() {
  ++run_.block->epoch;
  for (int i = 0; i < run_.count; ++i) {
    thread_at(i).wait = Wait::none;
    ++thread_at(i).warp_epoch;
  }
}

namespace {

void release_block_barrier() {
  for (int i = 1; i < run_.count; ++i)
    if (!same(thread_at(i).at, thread_at(0).at))
      NMT_FAIL("divergent barrier: {} waits at {}, {} at {}", name_of_thread(0),
               line_of(thread_at(0).at), name_of_thread(i), line_of(thread_at(i).at));
  next_epoch();
}

// Resumes the lanes of a mask when all of them have reached the same operation.
bool release_warp_operation(int first) {
  const WarpOperation& wanted = thread_at(first).operation;
  const int warp = first / warp_size * warp_size;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(wanted.mask >> lane & 1)) continue;
    const int number = warp + lane;
    if (number >= run_.count || thread_at(number).wait != Wait::warp_operation) return false;
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
  std::array<const MatrixOperation*, warp_size> lanes{};
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(mask >> lane & 1)) continue;
    Thread& thread = thread_at(warp + lane);
    WarpOperation& operation = thread.operation;
    if (operation.kind == WarpOperation::barrier) ++thread.warp_epoch;
    if (operation.kind == WarpOperation::ballot) operation.result = votes;
    if (operation.kind == WarpOperation::tensor_core) {
      lanes[static_cast<std::size_t>(lane)] = operation.matrix;
      if (lane == warp_size - 1) run_matrix_operation(lanes);
    }
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

}  // namespace

std::string state_of(int number) {
  const Thread& thread = thread_at(number);
  switch (thread.wait) {
    case Wait::block_barrier: return fmt::format("waits at the barrier of {}", line_of(thread.at));
    case Wait::blocks_barrier:
      return fmt::format("waits at the barrier of {} blocks of {}", thread.blocks.count,
                         line_of(thread.at));
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
  for (int i = 1; i < run_.count && other == 0; ++i)
    if (state_of(i) != state_of(0)) other = i;
  NMT_FAIL("deadlock: {} {}, {} {}", name_of_thread(0), state_of(0), name_of_thread(other),
           state_of(other));
}

namespace {

void add_shared(const void* key, std::size_t bytes) {
  constexpr std::size_t alignment = 32;  // as NMT_DYNAMIC_SHARED has it
  // Exactly so many bytes, so that accesses after them are found.
  void* exact = nullptr;
  NMT_CHECK(::posix_memalign(&exact, alignment, bytes) == 0,
            "emulator: no memory for {} bytes of shared memory", bytes);
  SharedMemory memory{key, {}, {static_cast<char*>(exact), &std::free}};
  memory.region = {memory.data.get(), memory.data.get() + bytes};
  std::memset(memory.data.get(), 0xFF, bytes);
  forget(memory.region);
  run_.block->shared.push_back(std::move(memory));
}

}  // namespace

void enter_block(Block& block) {
  run_.block = &block;
  running.block = block.number;
  running.block_epoch = block.epoch;
  running.seen = block.seen.empty() ? nullptr : &block.seen;
  running.met = block.met;
  running.set = block.set;
  blockIdx = coordinates(block.number, gridDim);
  if (is_dry()) select_dry_block(block.sample);
}

bool all_at(Wait wait) {
  for (int i = 0; i < run_.count; ++i)
    if (thread_at(i).wait != wait) return false;
  return true;
}

// Runs the threads of the running block, each to its next stop, until none can go on without other
// blocks. The order changes from stop to stop, so that results that depend on it change. Whether
// any thread has moved.
bool advance_block() {
  Block& block = *run_.block;
  for (bool any = false;; any = true, block.forward = !block.forward) {
    bool moved = false, finished = true;
    for (int i = 0; i < run_.count; ++i) {
      const int number = block.forward ? i : run_.count - 1 - i;
      if (thread_at(number).wait == Wait::none) {
        resume(number);
        moved = true;
      }
      if (run_.error) NMT_FAIL("{}", *run_.error);
    }
    for (int i = 0; i < run_.count; ++i) {
      if (thread_at(i).wait == Wait::warp_operation) moved = release_warp_operation(i) || moved;
      finished = finished && thread_at(i).wait == Wait::finished;
    }
    block.finished = finished;
    if (finished) return any || moved;
    if (all_at(Wait::block_barrier)) {
      release_block_barrier();
      moved = true;
    }
    if (!moved) return any;
  }
}

void prepare_block(Block& block, std::uint32_t number, std::uint32_t sample) {
  block.number = number;
  block.sample = sample;
  block.epoch = 0;
  block.forward = true;
  block.finished = false;
  block.shared.clear();
  block.seen.clear();
  block.met = block.set = 0;
  if (block.threads.size() < static_cast<std::size_t>(run_.count))
    block.threads.resize(static_cast<std::size_t>(run_.count));
  enter_block(block);
  if (is_dry()) begin_dry_block();
  if (run_.dynamic > 0) add_shared(nullptr, run_.dynamic);
  for (int i = 0; i < run_.count; ++i) prepare(i);
}

namespace {

// Cleans up after a launch, also after an exception.
struct Scope {
  OpenDeviceMemory open;
  ~Scope() {
    for (const auto& block : run_.blocks) block->shared.clear();
    running.in_kernel = false;
    running.seen = nullptr;
    run_.error.reset();
    // Not within the kernel, whose accesses are checked.
    if (run_.fixed > 0) note_fixed_shared(run_.kernel, run_.fixed);
  }
};

}  // namespace

std::string thread_name() {
  return name_of_thread(static_cast<int>(running.thread));
}

void abort_launch(std::string message) {
  run_.error = std::move(message);  // the stack of the thread is never unwound
  for (;;) pause();
}

const std::vector<SharedMemory>& shared_memories() {
  return run_.block->shared;
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

namespace {

std::uint32_t max_resident(std::size_t threads, std::size_t shared) {
  return static_cast<std::uint32_t>(multiprocessors() * blocks_with(threads, shared));
}

}  // namespace

cudaError_t run(const dim3& grid, const dim3& extent, std::size_t shared, bool cooperative,
                void (*thread)(void*), void* data) {
  const std::size_t count = std::size_t{extent.x} * extent.y * extent.z;
  constexpr unsigned max_grid_x = 0x7FFFFFFF, max_grid_yz = 65535;
  if (count == 0 || count > max_threads || shared > max_shared || grid.x > max_grid_x ||
      grid.y > max_grid_yz || grid.z > max_grid_yz)
    return cudaErrorInvalidValue;
  const std::uint64_t all = std::uint64_t{grid.x} * grid.y * grid.z;
  NMT_CHECK(all <= std::numeric_limits<std::uint32_t>::max(), "emulator: a grid of {} blocks", all);
  const auto blocks = static_cast<std::uint32_t>(all);
  const void* const kernel = *static_cast<const void* const*>(data);  // as cuda_runtime.h has it
  if (cooperative && blocks > max_resident(count, shared + fixed_shared(kernel)))
    return cudaErrorCooperativeLaunchTooLarge;
  NMT_CHECK(!running.in_kernel, "emulator: a kernel cannot launch another");
  const Scope scope;
  run_.count = static_cast<int>(count);
  run_.body = thread;
  run_.data = data;
  run_.dynamic = shared;
  run_.fixed = 0;
  run_.kernel = kernel;
  run_.has_opted_in = has_opted_in(kernel);
  run_.together = cooperative ? blocks : 0;
  blockDim = extent;
  gridDim = grid;
  static std::atomic<std::uint32_t> launches{0};
  running.launch = ++launches;
  note_launch(kernel);
  if (is_dry()) begin_dry_launch(kernel, blocks);
  const std::vector<std::uint32_t> numbers = blocks_to_run(blocks);
  if (cooperative) {
    run_cooperative(numbers);
  } else {
    if (run_.blocks.empty()) run_.blocks.push_back(std::make_unique<Block>());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
      prepare_block(*run_.blocks[0], numbers[i], i);
      advance_block();
      if (!run_.block->finished) deadlock();
    }
  }
  if (is_dry()) end_dry_launch();
  return cudaSuccess;
}

void barrier(std::source_location at) {
  run_.current->wait = Wait::block_barrier;
  run_.current->at = at;
  pause();
}

void blocks_barrier(const void* counter, unsigned count, bool leads, std::source_location at) {
  if (!running.seen) {
    // The texts are freed here: a thread that waits for ever frees nothing.
    run_.error = fmt::format("{} waits for other blocks at {} in a launch that is not cooperative",
                             thread_name(), line_of(at));
    for (;;) pause();
  }
  run_.current->wait = Wait::blocks_barrier;
  run_.current->at = at;
  run_.current->blocks = {counter, count, leads};
  pause();
}

namespace {

std::uint64_t warp_operation(const WarpOperation& operation) {
  const unsigned lane = running.thread % warp_size;
  if (!(operation.mask >> lane & 1))
    abort_launch(fmt::format("{} is not in the mask {:#x} of its warp operation at {}",
                             thread_name(), operation.mask, line_of(operation.at)));
  Thread& thread = *run_.current;
  thread.operation = operation;
  thread.wait = Wait::warp_operation;
  pause();
  return thread.operation.result;
}

}  // namespace

void warp_barrier(unsigned mask, std::source_location at) {
  warp_operation({.kind = WarpOperation::barrier, .mask = mask, .at = at});
}

void matrix_operation(const MatrixOperation& operation, std::source_location at) {
  warp_operation(
      {.kind = WarpOperation::tensor_core, .mask = 0xFFFFFFFFu, .at = at, .matrix = &operation});
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
  for (const SharedMemory& memory : run_.block->shared)
    if (memory.key == key) return memory.data.get();
  std::size_t total = bytes;
  for (const SharedMemory& memory : run_.block->shared) total += memory.region.size();
  // A kernel has 48 KB unless it has opted in to more, as launch() does for more dynamic memory.
  // Later launches are refused.
  constexpr std::size_t usual = std::size_t{48} << 10;
  run_.fixed = std::max(run_.fixed, total - run_.dynamic);
  if (run_.fixed > usual || total > (run_.has_opted_in ? max_shared : usual))
    abort_launch(fmt::format(
        "{} bytes of shared memory in a block; a kernel has 48 KB, or {} with dynamic memory",
        total, max_shared));
  if (run_.together > max_resident(static_cast<std::size_t>(run_.count), total))
    abort_launch(fmt::format("{} blocks with {} bytes of shared memory cannot wait for each other",
                             run_.together, total));
  add_shared(key, bytes);
  return run_.block->shared.back().data.get();
}

void* dynamic_shared() {
  return shared_memory(nullptr, 0);
}

}  // namespace nmt::emulator
