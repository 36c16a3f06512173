// Captures and graphs. A graph's nodes run in an order that its edges allow, the latest first, so
// that a missing edge shows.

#include "streams/stream_state.h"

#include <algorithm>
#include <queue>
#include <utility>

using namespace nmt::emulator;

namespace {

void leave(EmulatedStream& stream) {
  stream.graph = nullptr;
  stream.origin = stream.invalid = false;
  stream.last.clear();
}

cudaError_t run_node(const EmulatedNode& node) {
  return node.call ? node.call() : node.kernel.run();
}

}  // namespace

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
  for (EmulatedStream* other : streams()) {
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
  for (EmulatedStream* stream : streams())
    counters().destroyed_while_running += static_cast<std::int64_t>(stream->running.erase(exec));
  delete exec;
  return cudaSuccess;
}
