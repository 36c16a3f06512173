#include "memory/access_history.h"

#include "running.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace nmt::emulator {

const char* name_of(Access access) {
  return access == Access::read    ? "reads"
         : access == Access::write ? "writes"
                                   : "changes atomically";
}

namespace {

using Event = AccessEvent;
using Cell = AccessCell;

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

void check(Cell& cell, const Event& event, Access access, const void* address, bool shared) {
  const auto race = [&](const Event& before, const char* what) {
    abort_launch(fmt::format(
        "race: {} {} {} memory at {} that thread {} of block {} has {}, with no barrier between",
        thread_name(), name_of(access), shared ? "shared" : "device", address, before.thread,
        before.block, what));
  };
  const bool both_atomic = access == Access::atomic && cell.atomic;
  if (cell.write.launch != 0 && !both_atomic && !ordered(cell.write, event))
    race(cell.write, "written");
  if (access == Access::read) {
    if (shared && !cell.written)
      abort_launch(fmt::format("{} reads shared memory at {} that nobody has written",
                               thread_name(), address));
    note_read(cell, event);
    return;
  }
  if (cell.read.launch != 0 && !reads_ordered(cell, event)) race(cell.read, "read");
  cell.write = event;
  cell.atomic = access == Access::atomic;
  cell.written = true;
}

}  // namespace

// Makes the page's cells small enough for an access to its bytes from `begin` to `end`.
void AccessHistory::prepare(Page& page, std::size_t begin, std::size_t end) {
  constexpr std::size_t largest = 16;  // bytes of the longest access
  const auto wanted = static_cast<unsigned>(std::countr_zero(begin | end | largest));
  if (page.cells.empty()) {
    page.cells.resize(page_bytes >> wanted);
    page.shift = wanted;
  } else if (wanted < page.shift) {
    std::vector<Cell> cells(page_bytes >> wanted);
    for (std::size_t i = 0; i < cells.size(); ++i)
      cells[i] = page.cells[i >> (page.shift - wanted)];
    page.cells = std::move(cells);
    page.shift = wanted;
  }
}

void AccessHistory::note(std::size_t begin, std::size_t bytes, Access access, const void* address,
                         bool shared) {
  const Event event = now();
  for (std::size_t at = begin; at < begin + bytes;) {
    Page& page = pages_[at / page_bytes];
    const std::size_t from = at % page_bytes;
    const std::size_t to = std::min(from + (begin + bytes - at), page_bytes);
    prepare(page, from, to);
    for (std::size_t i = from >> page.shift; i < to >> page.shift; ++i)
      check(page.cells[i], event, access, address, shared);
    at += to - from;
  }
}

void AccessHistory::forbid(std::size_t begin, std::size_t bytes) {
  if (permitted_.empty())
    permitted_.assign(pages_.size() * page_bytes / line_bytes, std::uint8_t{line_bytes});
  std::fill_n(permitted_.begin() + static_cast<std::ptrdiff_t>(begin / line_bytes),
              (bytes + line_bytes - 1) / line_bytes, std::uint8_t{0});
}

void AccessHistory::permit(std::size_t begin, std::size_t bytes) {
  if (permitted_.empty()) return;
  const auto end = std::fill_n(permitted_.begin() + static_cast<std::ptrdiff_t>(begin / line_bytes),
                               bytes / line_bytes, std::uint8_t{line_bytes});
  if (bytes % line_bytes != 0) *end = static_cast<std::uint8_t>(bytes % line_bytes);
}

bool AccessHistory::are_permitted(std::size_t begin, std::size_t bytes) const {
  for (std::size_t at = begin; at < begin + bytes;) {
    const std::size_t to = std::min((at / line_bytes + 1) * line_bytes, begin + bytes);
    if ((to - 1) % line_bytes >= permitted_[at / line_bytes]) return false;
    at = to;
  }
  return true;
}

std::size_t AccessHistory::after_permitted(std::size_t begin) const {
  std::size_t line = begin / line_bytes;
  while (line > 0 && permitted_[line] == 0) --line;
  return begin - std::min(begin, line * line_bytes + permitted_[line]);
}

}  // namespace nmt::emulator
