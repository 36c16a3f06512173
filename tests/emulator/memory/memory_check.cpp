// Checks every memory access of kernels and of host code in the same files. g++ -fsanitize=thread
// calls a hook before each access; the hooks are defined here, and no sanitizer is linked. Rules
// for a kernel's thread:
// - It accesses its own stack, device memory, pinned memory and its block's shared memory, within
//   their bounds.
// - It accesses no memory of an arena that no tensor has.
// - It reads shared memory only where a thread has written.
// - Two threads access the same byte, one of them writing, only with a barrier in between (of the
//   block, or of the warp when they share one); from two blocks only with barriers of blocks in
//   between; or both accesses are atomic. What several blocks have read may be written after a
//   barrier of all of them.
// Host code does not access device memory.

#include "dry/dry_run.h"
#include "memory/access_history.h"
#include "running.h"
#include "tensor/guard.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>

namespace nmt::emulator {

#if !defined(NMT_EMULATOR_HOOKS)

void note_atomic(const void*, std::size_t) {}
void forget(const Region&) {}

const Guard& memory_guard() {
  static constexpr Guard none;
  return none;
}

#else

namespace {

// Keyed by the region's begin; those of the last few regions are found without a search.
std::unordered_map<const char*, AccessHistory> histories;
struct Found {
  const char* begin = nullptr;
  AccessHistory* history = nullptr;
};
std::array<Found, 16> found;

Found& found_of(const char* begin) {
  const auto number = reinterpret_cast<std::uintptr_t>(begin);
  return found[(number >> 4 ^ number >> 12) % found.size()];
}

AccessHistory& history_of(const Region& region) {
  Found& last = found_of(region.begin);
  if (last.begin != region.begin)
    last = {region.begin, &histories.try_emplace(region.begin, region.size()).first->second};
  return *last.history;
}

void check_region(const Region& region, const char* address, std::size_t bytes, Access access,
                  bool shared) {
  if (!region.has(address, bytes))
    abort_launch(
        fmt::format("{} {} {} bytes at the end of {} bytes of {} memory, {} past its begin",
                    thread_name(), name_of(access), bytes, region.size(),
                    shared ? "shared" : "device", address - region.begin));
  AccessHistory& history = history_of(region);
  const auto begin = static_cast<std::size_t>(address - region.begin);
  if (!history.permits(begin, bytes) && !running.is_late)
    abort_launch(fmt::format("{} {} {} bytes of device memory, {} past the end of a tensor",
                             thread_name(), name_of(access), bytes,
                             history.after_permitted(begin)));
  history.note(begin, bytes, access, address, shared);
}

extern "C" char __executable_start, end;

void check(const void* pointer, std::size_t bytes, Access access) {
  // The linker may use a kernel's copy of an inline function, with its hooks, for the program's
  // other threads too.
  if (!running.has_device) return;
  const char* address = static_cast<const char*>(pointer);
  if (!running.in_kernel) {
    if (!device_region(address).begin) return;
    // A hook cannot throw.
    fmt::print(stderr, "emulator: host code {} device memory at {}\n", name_of(access), pointer);
    std::abort();
  }
  if (running.stack.has(address)) return;
  ++counters().accesses;
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
  histories.erase(region.begin);
  found_of(region.begin) = {};
}

namespace {

// Calls change(history, begin) of the region that holds `data`.
template <class Change>
void change_permission(const char* data, Change&& change) {
  if (is_dry()) return;
  const Region region = device_region(data);
  if (region.begin) change(history_of(region), static_cast<std::size_t>(data - region.begin));
}

}  // namespace

const Guard& memory_guard() {
  static constexpr Guard guard{64,
                               [](const char* data, std::size_t bytes) {
                                 change_permission(data, [&](AccessHistory& history, auto begin) {
                                   history.forbid(begin, bytes);
                                 });
                               },
                               [](const char* data, std::size_t bytes) {
                                 change_permission(data, [&](AccessHistory& history, auto begin) {
                                   history.permit(begin, bytes);
                                 });
                               }};
  return guard;
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
