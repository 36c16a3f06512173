#pragma once

#include "cuda/runtime/graph_budget.h"
#include "cuda/runtime/state.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace nmt::cuda {

/// A kernel launch, as GraphCache records it.
struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared = 0;
  void** arguments = nullptr;
  std::span<const std::size_t> sizes;  ///< bytes of each argument
};

/// Captured CUDA graphs by key: the implementation of CudaDevice::repeat(). The first run of a
/// key's work is eager. The second run captures the stream and records each call: a kernel with the
/// bytes of its arguments, a matrix product or a copy with its sizes and addresses. Later runs
/// execute the same host code, but only compare its calls with the record: an equal call costs a
/// comparison, a changed kernel argument updates the graph's node, and the values that the host
/// uploads are gathered. At the end of the run, one copy uploads these values to the address that
/// the graph reads, and one launch replays the graph. When a call differs from the record, no work
/// of the run has been launched: the work is captured again, and the graph is updated or
/// instantiated again.
class GraphCache {
 public:
  explicit GraphCache(CudaDevice& device) : device_(device), state_(device.state()) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  /// Error (failed): called from work between graphs.
  void repeat(std::span<const std::int64_t> key, const std::function<void()>& work);
  /// Frees the memory of all graphs; false when there was none.
  bool release();
  GraphCounts counts() const;

  // Called for every call of the work while state.recording is this. True: the caller makes the
  // call, which executes or is captured.
  bool on_kernel(const Launch& launch);
  /// A call other than a kernel launch; `identity` is unique to the call and its arguments. Calls
  /// within this call, kernel launches too, are not reported until end_call().
  bool begin_call(std::span<const std::int64_t> identity);
  void end_call() { within_call_ = false; }
  /// The implementation of CudaDevice::between_graphs().
  void between_graphs(std::span<const std::int64_t> identity, std::function<void()> work);
  /// False: the graph makes the copy.
  bool on_upload(void* device, const void* host, std::size_t bytes);
  /// Called before the driver allocates or frees memory. A capture does not allow that, and it may
  /// invalidate addresses in a graph: a capture or comparison is aborted, and the work runs again.
  void on_memory_change();
  /// Whether the pass is aborted: no further call executes or is captured, and the work will run
  /// again. After a call that may allocate or free memory, the caller checks again.
  bool is_aborted() const { return mode_ == Mode::aborted; }
  /// Called where the host waits for the device or makes a call that no graph can contain: later
  /// runs of the key are eager.
  void forbid_capture(const char* what);

 private:
  enum class Mode { eager, capturing, comparing, aborted };
  enum class Kind { kernel, upload, other, between };

  // `begin` and `bytes`: a kernel's arguments, an upload's device address and size, or an identity,
  // in Record::bytes.
  struct RecordedCall {
    Kind kind;
    const void* kernel;
    dim3 grid, block;
    std::size_t shared, begin, bytes;
    cudaGraphNode_t node;  // of a kernel
  };
  struct Record {
    std::vector<RecordedCall> calls;
    std::vector<std::byte> bytes;
  };
  // The calls before, between or after work between graphs. Both handles are null without calls.
  struct Part {
    cudaGraph_t graph = nullptr;  // owns the nodes of the record
    cudaGraphExec_t exec = nullptr;
  };
  struct Entry : GraphBudget::Key {
    bool is_disabled = false;  // all runs are eager
    bool is_measured = false;  // `calls` and `upload_bytes` are set
    int consecutive_misfits = 0;
    std::int64_t calls = 0;        // of the work
    std::size_t upload_bytes = 0;  // of the work
    Record record;
    std::vector<Part> parts;        // can be launched if has_graph()
    char* upload_buffer = nullptr;  // device memory from which the graphs read uploaded values
    std::size_t upload_buffer_bytes = 0;
  };
  class Pass;

  // Resources that a queued launch may still use.
  struct Retired {
    cudaEvent_t done;
    std::vector<Part> parts;  // `exec` alone
    char* upload_buffer;
    std::size_t upload_buffer_bytes;
  };

  void run_work_between(const std::function<void()>& work);
  bool run_pass(Mode mode, Entry& entry, const std::function<void()>& work);
  void run_eagerly(Entry& entry, const std::function<void()>& work);
  bool replay(Entry& entry, const std::function<void()>& work);
  bool capture(Entry& entry, const std::function<void()>& work);
  bool instantiate_or_update(Entry& entry);
  bool update_graphs(Entry& entry);
  bool launch_graphs(Entry& entry);
  void begin_capture();
  void end_capture();
  void destroy_captured();
  void abort_pass();
  void evict(Entry& entry);
  void destroy_graphs(Entry& entry);
  void retire(std::vector<Part> parts, char* upload_buffer, std::size_t upload_buffer_bytes);
  void destroy_retired(bool wait);
  bool allocate_upload_buffer(Entry& entry, std::size_t bytes);
  bool admits(const Entry& entry, std::int64_t calls);
  RecordedCall* next_recorded(Kind kind, std::size_t bytes);
  void record_call(Kind kind, const Launch& launch, std::span<const std::byte> bytes);
  void record_node();

  CudaDevice& device_;
  CudaDevice::State& state_;
  std::map<std::vector<std::int64_t>, Entry> entries_;
  GraphBudget budget_;
  std::vector<Retired> retired_;
  std::multimap<std::size_t, char*> free_buffers_;  // upload buffers that no entry uses, by size
  GraphCounts counts_;
  // The current pass: one run of a key's work.
  Mode mode_ = Mode::eager;
  Entry* entry_ = nullptr;
  Record new_record_;  // of a capture
  bool within_call_ = false;
  cudaStream_t origin_ = nullptr;      // the stream of the capture
  std::vector<cudaGraph_t> captured_;  // of the parts so far; null: an empty part
  bool capture_is_empty_ = true;
  std::size_t call_index_ = 0, part_index_ = 0;
  std::vector<std::function<void()>> work_between_;  // the parts
  bool runs_between_ = false;                        // such work is running
  std::size_t upload_bytes_ = 0;                     // so far
  std::vector<std::byte> upload_values_;
};

// The first number of a call's identity.
enum CallType : std::int64_t {
  product_call,
  copy_call,
  clear_call,
  fork_call,
  second_branch_call,
  join_call
};

inline std::int64_t as_integer(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

/// Whether the pass that receives the calls, if any, is aborted.
inline bool is_aborted(const CudaDevice::State& state) {
  return state.recording && state.recording->is_aborted();
}

/// Makes a call that is not a launch(), unless a graph contains the call. A function that may
/// allocate or free memory checks is_aborted() before it queues work.
template <class Function>
void queue(const Cuda& cuda, std::initializer_list<std::int64_t> identity, Function&& function) {
  GraphCache* const recording = state_of(cuda).recording;
  if (!recording) return function();
  if (!recording->begin_call({identity.begin(), identity.size()})) return;
  function();
  recording->end_call();
}

}  // namespace nmt::cuda
