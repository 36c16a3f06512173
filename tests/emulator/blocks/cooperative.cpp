// Cooperative launches: all blocks are alive at the same time and wait for each other.

#include "blocks/block.h"
#include "core/error.h"
#include "dry/dry_run.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace nmt::emulator {
namespace {

std::uint32_t running_blocks() {
  return gridDim.x * gridDim.y * gridDim.z;
}

// Whether all threads of the running block wait at one barrier of blocks.
bool is_at_blocks_barrier() {
  if (!all_at(Wait::blocks_barrier)) return false;
  const Thread& first = thread_at(0);
  for (int i = 1; i < run_.count; ++i)
    if (!same(thread_at(i).at, first.at) || thread_at(i).blocks.counter != first.blocks.counter ||
        thread_at(i).blocks.count != first.blocks.count)
      NMT_FAIL("divergent barrier of blocks: {} waits at {}, {} at {}", name_of_thread(0),
               line_of(first.at), name_of_thread(i), line_of(thread_at(i).at));
  return true;
}

// Lets the blocks go on that have met: what each did before is ordered before what all do next.
void meet(const std::vector<Block*>& blocks) {
  ++running.meetings;
  std::vector<std::uint32_t> seen(running_blocks());
  for (const Block* block : blocks) {
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], block->seen[i]);
    seen[block->number] = block->epoch + 1;
  }
  for (Block* block : blocks) {
    enter_block(*block);
    block->seen = seen;
    block->met = running.meetings;
    if (block->set == 0) block->set = blocks[0]->number + 1;
    next_epoch();
  }
}

// Releases the barriers that all of their blocks have reached. In a dry run, whose other blocks do
// not run, those that all running blocks have reached.
bool release_blocks_barriers() {
  std::map<const void*, std::vector<Block*>> waiting;
  std::size_t waits = 0;
  for (Block* block : run_.alive) {
    if (block->finished) continue;
    enter_block(*block);
    if (!is_at_blocks_barrier()) continue;
    waiting[thread_at(0).blocks.counter].push_back(block);
    ++waits;
  }
  bool any = false;
  for (const auto& [counter, blocks] : waiting) {
    const auto barrier = [](Block* block) { return block->threads[0].blocks; };
    const unsigned count = barrier(blocks[0]).count;
    unsigned leaders = 0;
    for (Block* block : blocks) {
      leaders += barrier(block).leads;
      if (barrier(block).count != count || !same(block->threads[0].at, blocks[0]->threads[0].at))
        NMT_FAIL("barrier of blocks: block {} waits for {} blocks at {}, block {} for {} at {}",
                 blocks[0]->number, count, line_of(blocks[0]->threads[0].at), block->number,
                 barrier(block).count, line_of(block->threads[0].at));
    }
    if (blocks.size() > count)
      NMT_FAIL("barrier of blocks: {} blocks have reached one of {} at {}", blocks.size(), count,
               line_of(blocks[0]->threads[0].at));
    if (is_dry() ? waits < run_.alive.size() : blocks.size() < count) continue;
    if (!is_dry() && leaders != 1)
      NMT_FAIL("barrier of blocks: {} of {} blocks lead it at {}", leaders, count,
               line_of(blocks[0]->threads[0].at));
    meet(blocks);
    any = true;
  }
  return any;
}

[[noreturn]] void deadlock_of_blocks() {
  for (Block* block : run_.alive) {
    if (block->finished) continue;
    enter_block(*block);
    if (!is_at_blocks_barrier()) deadlock();
    NMT_FAIL("deadlock: {} {}, which other blocks do not reach", name_of_thread(0), state_of(0));
  }
  NMT_FAIL("deadlock");
}

}  // namespace

void run_cooperative(const std::vector<std::uint32_t>& numbers) {
  run_.alive.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (run_.blocks.size() <= i) run_.blocks.push_back(std::make_unique<Block>());
    prepare_block(*run_.blocks[i], numbers[i], static_cast<std::uint32_t>(i));
    run_.blocks[i]->seen.assign(running_blocks(), 0);
    run_.alive.push_back(run_.blocks[i].get());
  }
  for (bool forward = true;; forward = !forward) {
    bool moved = false, finished = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      Block& block = *run_.alive[forward ? i : numbers.size() - 1 - i];
      if (block.finished) continue;
      enter_block(block);
      moved = advance_block() || moved;
      finished = finished && block.finished;
    }
    if (finished) return;
    moved = release_blocks_barriers() || moved;
    if (!moved) deadlock_of_blocks();
  }
}

}  // namespace nmt::emulator
