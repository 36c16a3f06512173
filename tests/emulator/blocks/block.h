#pragma once

// The blocks of the running launch and their threads, shared by emulator.cpp and cooperative.cpp.

#include "running.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

namespace nmt::emulator {

enum class Wait { none, block_barrier, blocks_barrier, warp_operation, finished };

// A lane's input and output of a warp operation.
struct WarpOperation {
  enum Kind { barrier, shuffle, ballot, tensor_core } kind = barrier;
  unsigned mask = 0;
  std::source_location at;
  std::uint64_t bits = 0;
  int source = 0;  // the lane that a shuffle reads; out of range: the lane itself
  std::uint64_t result = 0;
  const MatrixOperation* matrix = nullptr;
};

// What a thread waits for at a barrier of blocks.
struct BlocksBarrier {
  const void* counter = nullptr;
  unsigned count = 0;
  bool leads = false;
};

struct Thread {
  boost::context::detail::fcontext_t where = nullptr;
  char* stack = nullptr;
  Wait wait = Wait::none;
  std::source_location at;  // of the barrier
  BlocksBarrier blocks;
  WarpOperation operation;
  std::uint32_t warp_epoch = 0;
};

// A block with its threads, whose stacks are reused by later blocks.
struct Block {
  std::vector<Thread> threads;  // as many as any block had
  std::vector<SharedMemory> shared;
  std::uint32_t number = 0, sample = 0;  // in the grid; among the blocks that run
  std::uint32_t epoch = 0;               // barriers of the block so far
  bool forward = true, finished = false;
  // Of a cooperative launch, for each block that runs: its epochs below this number are ordered
  // before what this block does now, by barriers of blocks.
  std::vector<std::uint32_t> seen;
  std::uint32_t met = 0, set = 0;  // its last meeting; its set of blocks, 0 before the first one
};

// The launch that runs: one block after the other, or all blocks of a cooperative launch in turn.
struct Run {
  std::vector<std::unique_ptr<Block>> blocks;  // as many as any launch had at a time
  Block* block = nullptr;                      // the running one
  std::vector<Block*> alive;                   // all blocks of a cooperative launch
  Thread* current = nullptr;                   // of the running block
  int count = 0;                               // threads of a block
  void (*body)(void*) = nullptr;
  void* data = nullptr;
  std::size_t dynamic = 0;
  std::size_t fixed = 0;  // shared memory that blocks have declared
  const void* kernel = nullptr;
  bool has_opted_in = false;   // to more than 48 KB of shared memory
  std::uint32_t together = 0;  // blocks of a cooperative launch
  std::optional<std::string> error;
  boost::context::detail::fcontext_t scheduler = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_size = 0;
};
extern Run run_;

/// A thread of the running block.
inline Thread& thread_at(int number) {
  return run_.block->threads[static_cast<std::size_t>(number)];
}
/// "thread (3,0,0) of block (0,1,0)", of the running block.
std::string name_of_thread(int number);
/// "waits at the barrier of kernel.cu:12"
std::string state_of(int number);
/// "kernel.cu:12"
std::string line_of(const std::source_location& at);
bool same(const std::source_location& a, const std::source_location& b);

/// Makes a block the running one.
void enter_block(Block& block);
/// Starts a block: a new one, with threads that have not run.
void prepare_block(Block& block, std::uint32_t number, std::uint32_t sample);
/// Runs the threads of the running block until none can go on without other blocks; whether any
/// has moved.
bool advance_block();
/// Whether all threads of the running block wait for the same.
bool all_at(Wait wait);
/// All threads of the running block go on after a barrier.
void next_epoch();
/// Fails with the names of two threads of the running block that wait for different things.
[[noreturn]] void deadlock();

/// Runs the blocks of a cooperative launch, in turn from barrier to barrier (cooperative.cpp).
void run_cooperative(const std::vector<std::uint32_t>& numbers);

}  // namespace nmt::emulator
