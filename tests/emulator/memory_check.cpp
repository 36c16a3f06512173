// Checks every memory access of kernels and of host code in the same files. g++ -fsanitize=thread
// calls a hook before each access; the hooks are defined here, and no sanitizer is linked. Rules
// for a kernel's thread:
// - It accesses its own stack, device memory, pinned memory and its block's shared memory, within
//   their bounds.
// - It reads shared memory only where a thread has written.
// - Two threads access the same byte, one of them writing, only with a barrier in between (of the
//   block, or of the warp when they share one); from two blocks only with barriers of blocks in
//   between; or both accesses are atomic. What several blocks have read may be written after a
//   barrier of all of them.
// Host code does not access device memory.

#include "dry/dry_run.h"
#include "running.h"

#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>

namespace nmt::emulator {

#if !defined(NMT_EMULATOR_HOOKS)

void note_atomic(const void*, std::size_t) {}
void forget(const Region&) {}

#else

namespace {

enum class Access { read, write, atomic };

const char* name_of(Access access) {
  return access == Access::read    ? "reads"
         : access == Access::write ? "writes"
                                   : "changes atomically";
}

// The time and the thread of an access.
struct Event {
  std::uint32_t launch = 0;  // 0: never
  std::uint32_t block = 0, thread = 0;
  std::uint32_t block_epoch = 0, warp_epoch = 0;
};

// The history of one byte: the last write and the reads since.
struct Cell {
  Event write, read;
  bool atomic = false;        // whether the last write was atomic
  bool many_readers = false;  // several threads have read it since the write, in the same epoch,
  bool many_warps = false;    // in other warps,
  bool many_blocks = false;   // in other blocks,
  bool many_sets = false;     // or in other sets of blocks that meet
  std::uint32_t meetings = 0, set = 0;  // of blocks, at the last read
  bool written = false;                 // ever
};

using Cells = std::vector<Cell>;
std::unordered_map<const char*, Cells> cells;  // keyed by the region's begin
const char* last_begin = nullptr;
Cells* last_cells = nullptr;

Cells& cells_of(const Region& region) {
  if (region.begin != last_begin) {
    Cells& found = cells[region.begin];
    if (found.empty()) found.resize(region.size());
    last_begin = region.begin;
    last_cells = &found;
  }
  return *last_cells;
}

Event now() {
  return {running.launch, running.block, running.thread, running.block_epoch, running.warp_epoch};
}

bool same_warp(const Event& a, const Event& b) {
  return a.thread / warp_size == b.thread / warp_size;
}

// Whether `before` is ordered before the running thread's next access.
bool ordered(const Event& before, const Event& after) {
  if (before.launch != after.launch) return true;
  if (before.block != after.block)
    return running.seen && before.block_epoch < (*running.seen)[before.block];
  return before.thread == after.thread || before.block_epoch < after.block_epoch ||
         (same_warp(before, after) && before.warp_epoch < after.warp_epoch);
}

bool reads_ordered(const Cell& cell, const Event& after) {
  if (cell.read.launch != after.launch) return true;
  if (cell.many_blocks)
    return running.set != 0 && !cell.many_sets && cell.set == running.set &&
           cell.meetings < running.met;
  if (cell.many_warps)
    return cell.read.block == after.block ? cell.read.block_epoch < after.block_epoch
                                          : ordered(cell.read, after);
  if (cell.many_readers && cell.read.block == after.block)
    return cell.read.block_epoch < after.block_epoch ||
           (same_warp(cell.read, after) && cell.read.warp_epoch < after.warp_epoch);
  return ordered(cell.read, after);
}

void note_read(Cell& cell, const Event& event) {
  const bool later = cell.read.launch != event.launch || cell.read.block != event.block ||
                     cell.read.block_epoch <= event.block_epoch;
  if (reads_ordered(cell, event) && later) {
    cell.many_readers = cell.many_warps = cell.many_blocks = cell.many_sets = false;
  } else {
    cell.many_readers = true;
    cell.many_warps = cell.many_warps || !same_warp(cell.read, event);
    cell.many_blocks = cell.many_blocks || cell.read.block != event.block;
    cell.many_sets = cell.many_sets || cell.set != running.set;
  }
  cell.meetings = running.meetings;
  cell.set = running.set;
  cell.read = event;
}

std::string name_of_event(const Event& event) {
  return fmt::format("thread {} of block {}", event.thread, event.block);
}

void check_cell(Cell& cell, Access access, const void* address, bool shared) {
  const Event event = now();
  const bool both_atomic = access == Access::atomic && cell.atomic;
  if (cell.write.launch != 0 && !both_atomic && !ordered(cell.write, event))
    abort_launch(fmt::format(
        "race: {} {} {} memory at {} that {} has written, with no barrier between", thread_name(),
        name_of(access), shared ? "shared" : "device", address, name_of_event(cell.write)));
  if (access != Access::read && cell.read.launch != 0 && !reads_ordered(cell, event))
    abort_launch(fmt::format(
        "race: {} {} {} memory at {} that {} has read, with no barrier between", thread_name(),
        name_of(access), shared ? "shared" : "device", address, name_of_event(cell.read)));
  if (access == Access::read) {
    if (shared && !cell.written)
      abort_launch(fmt::format("{} reads shared memory at {} that nobody has written",
                               thread_name(), address));
    note_read(cell, event);
  } else {
    cell.write = event;
    cell.atomic = access == Access::atomic;
    cell.written = true;
  }
}

void check_region(const Region& region, const char* address, std::size_t bytes, Access access,
                  bool shared) {
  if (!region.has(address, bytes))
    abort_launch(
        fmt::format("{} {} {} bytes at the end of {} bytes of {} memory, {} past its begin",
                    thread_name(), name_of(access), bytes, region.size(),
                    shared ? "shared" : "device", address - region.begin));
  Cells& of_region = cells_of(region);
  for (std::size_t i = 0; i < bytes; ++i)
    check_cell(of_region[static_cast<std::size_t>(address - region.begin) + i], access, address,
               shared);
}

extern "C" char __executable_start, end;

void check(const void* pointer, std::size_t bytes, Access access) {
  // The linker may use a kernel's copy of an inline function, with its hooks, for the program's
  // other threads too.
  if (!running.has_device) return;
  const char* address = static_cast<const char*>(pointer);
  counters().accesses += running.in_kernel;
  if (!running.in_kernel) {
    if (!device_region(address).begin) return;
    // A hook cannot throw.
    fmt::print(stderr, "emulator: host code {} device memory at {}\n", name_of(access), pointer);
    std::abort();
  }
  if (running.stack.has(address)) return;
  for (const SharedMemory& memory : shared_memories())
    if (memory.region.has(address))
      return is_dry() ? void() : check_region(memory.region, address, bytes, access, true);
  if (is_dry() && device_region(address).has(address, bytes)) {
    if (access != Access::write) note_traffic(address, bytes, false);
    if (access != Access::read) note_traffic(address, bytes, true);
    return;
  }
  if (const Region region = device_region(address); region.begin)
    return check_region(region, address, bytes, access, false);
  if (pinned_region(address).has(address, bytes)) return;
  // Constants, and variables like threadIdx.
  if (access == Access::read && address >= &__executable_start && address < &end) return;
  abort_launch(fmt::format("{} {} {} bytes at {}, which is neither device nor shared memory",
                           thread_name(), name_of(access), bytes, pointer));
}

}  // namespace

void note_atomic(const void* address, std::size_t bytes) {
  check(address, bytes, Access::atomic);
}

void forget(const Region& region) {
  cells.erase(region.begin);
  if (last_begin == region.begin) last_begin = nullptr;
}

#endif

}  // namespace nmt::emulator

#if defined(NMT_EMULATOR_HOOKS)

using nmt::emulator::Access;
using nmt::emulator::check;

#define NMT_HOOKS(bytes)                        \
  void __tsan_read##bytes(void* p) {            \
    check(p, bytes, Access::read);              \
  }                                             \
  void __tsan_write##bytes(void* p) {           \
    check(p, bytes, Access::write);             \
  }                                             \
  void __tsan_unaligned_read##bytes(void* p) {  \
    check(p, bytes, Access::read);              \
  }                                             \
  void __tsan_unaligned_write##bytes(void* p) { \
    check(p, bytes, Access::write);             \
  }                                             \
  void __tsan_volatile_read##bytes(void* p) {   \
    check(p, bytes, Access::read);              \
  }                                             \
  void __tsan_volatile_write##bytes(void* p) {  \
    check(p, bytes, Access::write);             \
  }

extern "C" {
NMT_HOOKS(1)
NMT_HOOKS(2)
NMT_HOOKS(4)
NMT_HOOKS(8)
NMT_HOOKS(16)
void __tsan_read_range(void* p, std::size_t bytes) {
  check(p, bytes, Access::read);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  check(p, bytes, Access::write);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}

#endif
