// Streams, events, copies and graphs. A call on a stream is complete when it returns; while the
// stream is captured, the call becomes a node instead. A graph's nodes run in an order that its
// edges allow, the latest first, so that a missing edge shows. Late streams (emulator.h) run their
// calls only when someone waits for them, so that a missing wait shows. A call that returns
// cudaErrorNotReady waits for another process: it and all later calls of its stream run when it is
// asked again and ready.

#include "dry/dry_run.h"
#include "running.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <queue>
#include <set>
#include <string_view>
#include <thread>

namespace {

// A launch with copies of its arguments, each 16-byte aligned.
struct Kernel {
  Kernel() = default;
  explicit Kernel(const nmt::emulator::DeferredLaunch& from)
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

}  // namespace

struct EmulatedNode {
  std::string kind;
  Kernel kernel;                      // of a kernel
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
  std::int64_t place = 0;  // work of the stream before it
};
struct EmulatedGraphExec {
  const EmulatedGraph* graph =
      nullptr;  // from which it was instantiated, to find nodes by their number
  std::vector<EmulatedNode> nodes;
  std::vector<std::vector<std::size_t>> needs;
};

namespace nmt::emulator {
namespace {

bool are_late_at_first() {
  const char* const text = std::getenv("NMT_EMULATED_STREAMS");
  return text && std::string_view(text) == "late";
}

std::set<EmulatedStream*> streams;
Counters counted = [] {
  Counters first;
  first.late_streams = are_late_at_first();
  return first;
}();

// Runs the stream's first `place` calls; the first error, or cudaErrorNotReady. A stream that is
// gone has run all.
cudaError_t run_until(EmulatedStream* stream, std::int64_t place) {
  if (!streams.contains(stream)) return cudaSuccess;
  cudaError_t first = std::exchange(stream->failed, cudaSuccess);
  while (stream->done < place) {
    std::function<cudaError_t()> call = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    ++stream->done;
    const cudaError_t status = call();
    if (status == cudaErrorNotReady) {
      stream->waiting.push_front(std::move(call));
      --stream->done;
      return first == cudaSuccess ? status : first;
    }
    if (first == cudaSuccess) first = status;
  }
  return first;
}

// The same for a host that waits.
cudaError_t wait_until(EmulatedStream* stream, std::int64_t place) {
  for (;;) {
    const cudaError_t status = run_until(stream, place);
    if (status != cudaErrorNotReady) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The host has seen that these launches are over.
void finish(const std::set<cudaGraphExec_t>& launches) {
  for (EmulatedStream* stream : streams)
    for (const cudaGraphExec_t exec : launches) stream->running.erase(exec);
}

void leave(EmulatedStream& stream) {
  stream.graph = nullptr;
  stream.origin = stream.invalid = false;
  stream.last.clear();
}

cudaError_t add(EmulatedStream& stream, EmulatedNode node) {
  if (stream.invalid) return cudaErrorStreamCaptureInvalidated;
  node.needs = stream.last;
  node.number = stream.graph->nodes.size();
  stream.graph->nodes.push_back(std::make_unique<EmulatedNode>(std::move(node)));
  stream.last = {stream.graph->nodes.back().get()};
  return cudaSuccess;
}

cudaError_t run_node(const EmulatedNode& node) {
  return node.call ? node.call() : node.kernel.run();
}

}  // namespace

void hold_stream(cudaStream_t stream, std::function<bool()> ready) {
  submit(stream, "hold",
         [ready = std::move(ready)] { return ready() ? cudaSuccess : cudaErrorNotReady; });
}

bool exists(cudaStream_t stream) {
  return streams.contains(stream);
}

bool is_on_current_device(cudaStream_t stream) {
  return !stream || stream->device == running.device;
}

Counters& counters() {
  return counted;
}

bool is_captured(cudaStream_t stream) {
  return stream && stream->graph;
}

bool is_deferred(cudaStream_t stream) {
  if (!stream) return false;
  if (is_captured(stream) || counted.late_streams) return true;
  if (stream->waiting.empty()) return false;
  const cudaError_t status = run_until(stream, stream->asked());
  if (status != cudaErrorNotReady) stream->failed = status;
  return !stream->waiting.empty();
}

cudaError_t defer(cudaStream_t stream, const DeferredLaunch& launch) {
  if (is_captured(stream))
    return add(*stream, {.kind = "kernel", .kernel = Kernel(launch), .call = {}, .needs = {}});
  ++queued_calls()["kernel"];
  stream->waiting.emplace_back([kernel = Kernel(launch)] { return kernel.run(); });
  return cudaSuccess;
}

cudaError_t defer(cudaStream_t stream, const char* kind, std::function<cudaError_t()> call) {
  if (is_captured(stream))
    return add(*stream, {.kind = kind, .kernel = {}, .call = std::move(call), .needs = {}});
  ++queued_calls()[kind];
  stream->waiting.push_back(std::move(call));
  return cudaSuccess;
}

std::map<std::string, std::int64_t>& queued_calls() {
  static std::map<std::string, std::int64_t> calls;
  return calls;
}

cudaError_t submit(cudaStream_t stream, const char* kind, std::function<cudaError_t()> call) {
  if (is_deferred(stream)) return defer(stream, kind, std::move(call));
  const cudaError_t status = call();
  if (status != cudaErrorNotReady || !stream) return status;
  stream->waiting.push_back(std::move(call));
  return cudaSuccess;
}

cudaError_t finish_stream(cudaStream_t stream) {
  return stream ? wait_until(stream, stream->asked()) : cudaSuccess;
}

void advance_streams() {
  for (EmulatedStream* stream : streams) {
    const cudaError_t status = run_until(stream, stream->asked());
    if (status != cudaErrorNotReady) stream->failed = status;
  }
}

cudaError_t finish_streams() {
  cudaError_t first = cudaSuccess;
  for (EmulatedStream* stream : streams)
    if (const cudaError_t status = finish_stream(stream); first == cudaSuccess) first = status;
  return first;
}

bool breaks_captures() {
  bool any = false;
  for (EmulatedStream* stream : streams)
    if (stream->graph) any = stream->invalid = true;
  return any;
}

}  // namespace nmt::emulator

using namespace nmt::emulator;

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const void* const host = !to_device ? to : !from_device ? from : nullptr;
  const bool is_pageable = host && !pinned_region(host).has(host, bytes);
  if (is_pageable && is_captured(stream)) {  // the node would access it after the call
    breaks_captures();
    return cudaErrorStreamCaptureUnsupported;
  }
  const auto copy = [=](const void* source) {
    if (to_device != device_region(to).has(to, bytes) ||
        from_device != device_region(source).has(source, bytes))
      return cudaErrorInvalidValue;
    if (is_dry()) {
      const double moved = static_cast<double>(bytes);
      count("copy", {1, from_device ? moved : 0, to_device ? moved : 0, 0});
      if (is_sampled() && bytes > max_dry_copy) return cudaSuccess;
    }
    const OpenDeviceMemory open;
    std::memcpy(to, source, bytes);
    return cudaSuccess;
  };
  if (is_pageable && is_deferred(stream)) {
    // The driver reads pageable memory before the call returns, and writes it then too.
    if (!to_device) {
      const cudaError_t status = finish_stream(stream);
      return status == cudaSuccess ? copy(from) : status;
    }
    const auto* const bytes_of_host = static_cast<const char*>(from);
    return defer(stream, "copy",
                 [copy, staged = std::vector<char>(bytes_of_host, bytes_of_host + bytes)] {
                   return copy(staged.data());
                 });
  }
  return submit(stream, "copy", [=] { return copy(from); });
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  return submit(stream, "memset", [=] {
    if (!device_region(data).has(data, bytes)) return cudaErrorInvalidValue;
    if (is_dry()) {
      count("zeros", {1, 0, static_cast<double>(bytes), 0});
      if (is_sampled() && bytes > max_dry_copy) return cudaSuccess;
    }
    const OpenDeviceMemory open;
    std::memset(data, value, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream;
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = finish_stream(stream);
  streams.erase(stream);
  delete stream;
  return status;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  ++counters().waits;
  const cudaError_t status = finish_stream(stream);
  if (stream) stream->running.clear();
  return status;
}
cudaError_t cudaDeviceSynchronize() {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  ++counters().waits;
  const cudaError_t status = finish_streams();
  for (EmulatedStream* stream : streams) stream->running.clear();
  return status;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream && stream->device != event->device) return cudaErrorInvalidResourceHandle;
  *event = {event->device, std::chrono::steady_clock::now(), nullptr, {}, {}};
  if (stream) event->before = stream->running;
  if (stream) event->stream = stream, event->place = stream->asked();
  if (is_captured(stream)) event->graph = stream->graph, event->nodes = stream->last;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->graph) return cudaErrorCapturedEvent;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  ++counters().waits;
  const cudaError_t status = wait_until(event->stream, event->place);
  finish(event->before);
  return status;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->graph) return cudaErrorCapturedEvent;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (!std::exchange(event->seen, true)) return cudaErrorNotReady;
  const cudaError_t status = run_until(event->stream, event->place);
  if (status == cudaErrorNotReady) return status;
  finish(event->before);
  return status;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->graph || end->graph) return cudaErrorCapturedEvent;
  *milliseconds = std::chrono::duration<float, std::milli>(end->reached - start->reached).count();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

// A stream that waits for an event of a capture is captured too.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!event->graph) {
    if (is_captured(stream)) return cudaErrorStreamCaptureIsolation;
    return submit(stream, "wait", [before = event->stream, place = event->place] {
      return run_until(before, place);
    });
  }
  if (stream->graph && stream->graph != event->graph) return cudaErrorStreamCaptureIsolation;
  stream->graph = event->graph;
  for (const cudaGraphNode_t node : event->nodes)
    if (std::ranges::find(stream->last, node) == stream->last.end()) stream->last.push_back(node);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || stream->graph) return cudaErrorInvalidValue;
  stream->graph = new EmulatedGraph;
  stream->origin = true;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream || !stream->graph || !stream->origin) return cudaErrorStreamCaptureUnmatched;
  std::unique_ptr<EmulatedGraph> captured(stream->graph);
  bool invalid = false;
  // All branches must have been joined to the origin.
  std::set<const EmulatedNode*> joined;
  std::vector<cudaGraphNode_t> open = stream->last;
  while (!open.empty()) {
    const cudaGraphNode_t node = open.back();
    open.pop_back();
    if (joined.insert(node).second) open.insert(open.end(), node->needs.begin(), node->needs.end());
  }
  for (EmulatedStream* other : streams) {
    if (other->graph != captured.get()) continue;
    invalid = invalid || other->invalid;
    leave(*other);
  }
  if (invalid) return cudaErrorStreamCaptureInvalidated;
  if (joined.size() != captured->nodes.size()) return cudaErrorStreamCaptureUnjoined;
  *graph = captured.release();
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData**, std::size_t* count) {
  *status = !is_captured(stream) ? cudaStreamCaptureStatusNone
            : stream->invalid    ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (graph) *graph = stream->graph;
  if (dependencies) *dependencies = stream->last.data();
  if (count) *count = stream->last.size();
  return cudaSuccess;
}

namespace {

// Whether the kernels may still have the shared memory of their nodes: a limit may have become
// smaller.
bool have_shared_memory(const std::vector<EmulatedNode>& nodes) {
  return std::ranges::all_of(nodes, [](const EmulatedNode& node) {
    return node.call || node.kernel.shared <= shared_limit(node.kernel.name);
  });
}

std::vector<std::vector<std::size_t>> needs_of(const EmulatedGraph& graph) {
  std::vector<std::vector<std::size_t>> needs;
  for (const auto& node : graph.nodes) {
    std::vector<std::size_t>& numbers = needs.emplace_back();
    for (const EmulatedNode* other : node->needs) numbers.push_back(other->number);
  }
  return needs;
}

}  // namespace

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (counters().instantiations.fails()) return cudaErrorMemoryAllocation;
  *exec = new EmulatedGraphExec{graph, {}, needs_of(*graph)};
  for (const auto& node : graph->nodes) (*exec)->nodes.push_back(*node);
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  *result = {};
  if (needs_of(*graph) != exec->needs) return cudaErrorGraphExecUpdateFailure;
  for (std::size_t i = 0; i < exec->nodes.size(); ++i) {
    const EmulatedNode &from = *graph->nodes[i], &to = exec->nodes[i];
    if (from.kind == to.kind && from.kernel.name == to.kernel.name) continue;
    result->errorNode = graph->nodes[i].get();
    return cudaErrorGraphExecUpdateFailure;
  }
  for (std::size_t i = 0; i < exec->nodes.size(); ++i) exec->nodes[i] = *graph->nodes[i];
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  // Nodes are those of the graph from which it was instantiated.
  const auto& nodes = exec->graph->nodes;
  const bool known =
      std::ranges::any_of(nodes, [&](const auto& other) { return other.get() == node; });
  if (!known || node->kernel.name != parameters->func) return cudaErrorInvalidValue;
  if (parameters->sharedMemBytes > shared_limit(parameters->func)) return cudaErrorInvalidValue;
  Kernel& kernel = exec->nodes[node->number].kernel;
  kernel.grid = parameters->gridDim;
  kernel.block = parameters->blockDim;
  kernel.shared = parameters->sharedMemBytes;
  kernel.set(parameters->kernelParams);
  return cudaSuccess;
}

namespace {

cudaError_t run_graph(const std::vector<EmulatedNode>& nodes,
                      const std::vector<std::vector<std::size_t>>& needs) {
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::vector<std::size_t>> followers(nodes.size());
  std::priority_queue<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = needs[i].size();
    for (const std::size_t need : needs[i]) followers[need].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    if (const cudaError_t status = run_node(nodes[next]); status != cudaSuccess) return status;
    for (const std::size_t follower : followers[next])
      if (--missing[follower] == 0) ready.push(follower);
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  if (is_captured(stream)) return cudaErrorStreamCaptureUnsupported;
  return counters().uploads.fails() ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!is_on_current_device(stream)) return cudaErrorInvalidResourceHandle;
  if (is_captured(stream))
    return cudaErrorStreamCaptureUnsupported;  // a child graph, which is not emulated
  if (counters().graph_launches.fails()) return cudaErrorMemoryAllocation;
  if (!have_shared_memory(exec->nodes)) return cudaErrorInvalidValue;
  if (stream) stream->running.insert(exec);
  if (!is_deferred(stream)) return run_graph(exec->nodes, exec->needs);
  // Later changes of the graph are of later launches.
  return defer(stream, "graph",
               [nodes = exec->nodes, needs = exec->needs] { return run_graph(nodes, needs); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  for (EmulatedStream* stream : streams)
    counters().destroyed_while_running += static_cast<std::int64_t>(stream->running.erase(exec));
  delete exec;
  return cudaSuccess;
}
