#pragma once

// The contents of the emulated streams, events and graphs.

#include "running.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace nmt::emulator {

// Marks the launches in its scope as late.
struct Late {
  Late() { running.is_late = true; }
  ~Late() { running.is_late = false; }
};

// A launch with copies of its arguments, each 16-byte aligned.
struct Kernel {
  Kernel() = default;
  explicit Kernel(const DeferredLaunch& from)
      : name(from.kernel),
        grid(from.grid),
        block(from.block),
        shared(from.shared),
        cooperative(from.cooperative),
        sizes(from.sizes, from.sizes + from.count),
        start(from.start) {
    set(from.arguments);
  }
  void set(void** from) {
    arguments.clear();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      arguments.emplace_back((sizes[i] + sizeof(Piece) - 1) / sizeof(Piece));
      std::memcpy(arguments.back().data(), from[i], sizes[i]);
    }
  }
  cudaError_t run() const {
    std::vector<std::vector<Piece>> copies = arguments;
    std::vector<void*> pointers;
    for (std::vector<Piece>& argument : copies) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const Late late;
    return start(name, grid, block, pointers.data(), shared, cooperative);
  }
  struct alignas(16) Piece {
    std::byte bytes[16];
  };
  void* name = nullptr;
  dim3 grid, block;
  std::size_t shared = 0;
  bool cooperative = false;
  std::vector<std::size_t> sizes;
  std::vector<std::vector<Piece>> arguments;
  cudaError_t (*start)(void*, dim3, dim3, void**, std::size_t, bool) = nullptr;
};

}  // namespace nmt::emulator

struct EmulatedNode {
  std::string kind;
  nmt::emulator::Kernel kernel;       // of a kernel
  std::function<cudaError_t()> call;  // of anything else
  std::vector<EmulatedNode*> needs;
  std::size_t number = 0;
};
struct EmulatedGraph {
  std::vector<std::unique_ptr<EmulatedNode>> nodes;
};
struct EmulatedStream {
  int device = nmt::emulator::running.device;
  EmulatedGraph* graph = nullptr;  // into which it is captured
  bool origin = false, invalid = false;
  std::vector<cudaGraphNode_t> last;  // dependencies of the next node
  std::set<cudaGraphExec_t> running;  // launches of graphs that the host has not waited for
  std::deque<std::function<cudaError_t()>> waiting;  // work that has not run,
  std::int64_t done = 0;                             // and how much of it has
  cudaError_t failed = cudaSuccess;                  // in work that nobody waited for
  std::int64_t asked() const { return done + std::ssize(waiting); }
};
// The time at which the stream reached the event, or its place in a graph.
struct EmulatedEvent {
  int device = nmt::emulator::running.device;
  std::chrono::steady_clock::time_point reached;
  EmulatedGraph* graph = nullptr;
  std::vector<cudaGraphNode_t> nodes;
  std::set<cudaGraphExec_t> before;  // launches before it in its stream
  bool seen = false;                 // by a query: the first one finds it not ready
  EmulatedStream* stream = nullptr;
  std::int64_t calls_before = 0;  // work of the stream before it
};
struct EmulatedGraphExec {
  const EmulatedGraph* graph =
      nullptr;  // from which it was instantiated, to find nodes by their number
  std::vector<EmulatedNode> nodes;
  std::vector<std::vector<std::size_t>> needs;
};

namespace nmt::emulator {

/// All streams.
std::set<EmulatedStream*>& streams();

}  // namespace nmt::emulator
