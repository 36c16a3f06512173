// Streams, events and copies. A call on a stream is complete when it returns; while the stream is
// captured, the call becomes a node of a graph instead (graph.cpp). Late streams (emulator.h) run
// their calls only when someone waits for them, so that a missing wait shows. A call that returns
// cudaErrorNotReady waits for another process: it and all later calls of its stream run when it is
// asked again and ready.

#include "dry/dry_run.h"
#include "streams/stream_state.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

namespace nmt::emulator {
namespace {

bool are_late_at_first() {
  const char* const text = std::getenv("NMT_EMULATED_STREAMS");
  return text && std::string_view(text) == "late";
}

Counters counted = [] {
  Counters first;
  first.late_streams = are_late_at_first();
  if (const char* const loss = std::getenv("NMT_EMULATED_LOSS"))
    first.launches_until_loss = std::strtoll(loss, nullptr, 10);
  return first;
}();

// Runs the first `calls` calls of the stream; the first error, or cudaErrorNotReady. A stream that
// is gone has run all.
cudaError_t run_until(EmulatedStream* stream, std::int64_t calls) {
  if (!streams().contains(stream)) return cudaSuccess;
  cudaError_t first = std::exchange(stream->failed, cudaSuccess);
  while (stream->done < calls) {
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
cudaError_t wait_until(EmulatedStream* stream, std::int64_t calls) {
  for (;;) {
    const cudaError_t status = run_until(stream, calls);
    if (status != cudaErrorNotReady) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The host has seen that these launches are over.
void finish(const std::set<cudaGraphExec_t>& launches) {
  for (EmulatedStream* stream : streams())
    for (const cudaGraphExec_t exec : launches) stream->running.erase(exec);
}

cudaError_t add(EmulatedStream& stream, EmulatedNode node) {
  if (stream.invalid) return cudaErrorStreamCaptureInvalidated;
  node.needs = stream.last;
  node.number = stream.graph->nodes.size();
  stream.graph->nodes.push_back(std::make_unique<EmulatedNode>(std::move(node)));
  stream.last = {stream.graph->nodes.back().get()};
  return cudaSuccess;
}

}  // namespace

std::set<EmulatedStream*>& streams() {
  static std::set<EmulatedStream*> all;
  return all;
}

void hold_stream(cudaStream_t stream, std::function<bool()> ready) {
  submit(stream, "hold",
         [ready = std::move(ready)] { return ready() ? cudaSuccess : cudaErrorNotReady; });
}

bool exists(cudaStream_t stream) {
  return streams().contains(stream);
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
  for (EmulatedStream* stream : streams()) {
    const cudaError_t status = run_until(stream, stream->asked());
    if (status != cudaErrorNotReady) stream->failed = status;
  }
}

cudaError_t finish_streams() {
  cudaError_t first = cudaSuccess;
  for (EmulatedStream* stream : streams())
    if (const cudaError_t status = finish_stream(stream); first == cudaSuccess) first = status;
  return first;
}

bool breaks_captures() {
  bool any = false;
  for (EmulatedStream* stream : streams())
    if (stream->graph) any = stream->invalid = true;
  return any;
}

}  // namespace nmt::emulator

using namespace nmt::emulator;

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (counters().lost) return cudaErrorIllegalAddress;
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
  streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = finish_stream(stream);
  streams().erase(stream);
  delete stream;
  return status;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (counters().lost) return cudaErrorIllegalAddress;
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
  for (EmulatedStream* stream : streams()) stream->running.clear();
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
  if (counters().lost) return cudaErrorIllegalAddress;
  if (stream && stream->device != event->device) return cudaErrorInvalidResourceHandle;
  *event = {event->device, std::chrono::steady_clock::now(), nullptr, {}, {}};
  if (stream) event->before = stream->running;
  if (stream) event->stream = stream, event->calls_before = stream->asked();
  if (is_captured(stream)) event->graph = stream->graph, event->nodes = stream->last;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (counters().lost) return cudaErrorIllegalAddress;
  if (event->graph) return cudaErrorCapturedEvent;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  ++counters().waits;
  const cudaError_t status = wait_until(event->stream, event->calls_before);
  finish(event->before);
  return status;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->graph) return cudaErrorCapturedEvent;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (!std::exchange(event->seen, true)) return cudaErrorNotReady;
  const cudaError_t status = run_until(event->stream, event->calls_before);
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
    return submit(stream, "wait", [before = event->stream, calls = event->calls_before] {
      return run_until(before, calls);
    });
  }
  if (stream->graph && stream->graph != event->graph) return cudaErrorStreamCaptureIsolation;
  stream->graph = event->graph;
  for (const cudaGraphNode_t node : event->nodes)
    if (std::ranges::find(stream->last, node) == stream->last.end()) stream->last.push_back(node);
  return cudaSuccess;
}
