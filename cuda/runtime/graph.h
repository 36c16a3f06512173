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

/// The launch of a kernel, as a graph records it.
struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared = 0;
  void** arguments = nullptr;
  std::span<const std::size_t> sizes;  ///< bytes of each argument
};

/// Recurring work as CUDA graphs: the implementation of CudaDevice::repeat(). The first time, the
/// work of a key runs call by call. The second time the stream is captured, and the calls are
/// noted: kernels with the bytes of their arguments, products and copies with their sizes and
/// addresses. From then on the host runs the same code, but its calls are only compared with the
/// notes: an equal call costs a comparison, a changed kernel argument one update of the graph's
/// node, and host values are gathered. At the end one copy uploads the host values to where the
/// graph reads them, and one launch runs the graph. When a call differs from the notes, nothing has
/// run yet: the work is captured again, and the graph is updated or instantiated again.
class Graphs {
 public:
  explicit Graphs(CudaDevice& device) : device_(device), state_(device.state()) {}
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  /// Error (failed): called from work between graphs.
  void repeat(std::span<const std::int64_t> key, const std::function<void()>& work);
  /// Frees the memory of all graphs; false when there was none.
  bool release();
  GraphCounts counts() const;

  // Called for every call of the work while state.recording is this. True: the caller makes the
  // call, which runs or is captured.
  bool kernel(const Launch& launch);
  /// A call of another kind, which `identity` tells from all others. The calls that it consists of,
  /// kernels too, are not reported until call_over().
  bool call(std::span<const std::int64_t> identity);
  void call_over() { within_call_ = false; }
  /// The implementation of CudaDevice::between_graphs().
  void between(std::span<const std::int64_t> identity, std::function<void()> work);
  /// False: the graph makes the copy.
  bool upload(void* device, const void* host, std::size_t bytes);
  /// The driver is about to allocate or free memory, which a capture does not allow and which may
  /// invalidate addresses in a graph. The work will run again, call by call.
  void memory_moves();
  /// Whether no call of the work runs or is captured any more, since the work will run again. A
  /// call that may move memory asks again afterwards.
  bool is_dropped() const { return mode_ == Mode::dropped; }
  /// The host waits for the device, or makes a call that no graph can hold: the key's work runs
  /// call by call from now on.
  void refuse(const char* what);

 private:
  enum class Mode { watching, capturing, comparing, dropped };
  enum class Kind { kernel, upload, other, between };

  // A call and the offset of its bytes: a kernel's arguments; an upload's device address and size;
  // an identity.
  struct Call {
    Kind kind;
    const void* kernel;
    dim3 grid, block;
    std::size_t shared, begin, bytes;
    cudaGraphNode_t node;  // a kernel's
  };
  struct Notes {
    std::vector<Call> calls;
    std::vector<std::byte> bytes;
  };
  // The calls up to work between graphs; without a graph where there are none.
  struct Part {
    cudaGraph_t graph = nullptr;  // its nodes are those of the notes
    cudaGraphExec_t exec = nullptr;
  };
  struct Entry : GraphBudget::Key {
    bool unfit = false, seen = false;
    int misfits = 0;          // in a row
    std::int64_t calls = 0;   // that the work makes
    std::size_t uploads = 0;  // bytes that the work uploads
    Notes notes;
    std::vector<Part> parts;  // can be launched if the key has a graph
    char* staged = nullptr;   // device memory from which the graphs read them
    std::size_t staged_bytes = 0;
  };
  class Pass;

  // What may still be in use by a launch that has been queued.
  struct Retired {
    cudaEvent_t done;
    std::vector<Part> parts;  // without their graphs
    char* staged;
    std::size_t staged_bytes;
  };

  void run_between(const std::function<void()>& work);
  bool run(Mode mode, Entry& entry, const std::function<void()>& work);
  void do_plainly(Entry& entry, const std::function<void()>& work);
  bool compare(Entry& entry, const std::function<void()>& work);
  bool capture(Entry& entry, const std::function<void()>& work);
  bool take(Entry& entry);
  bool update(Entry& entry);
  bool start(Entry& entry);
  void begin_part();
  void end_part();
  void discard_captured();
  void drop();
  void forget(Entry& entry);
  void forget_parts(Entry& entry);
  void retire(std::vector<Part> parts, char* staged, std::size_t staged_bytes);
  void collect(bool wait);
  bool reserve(Entry& entry, std::size_t bytes);
  bool admits(const Entry& entry, std::int64_t calls);
  Call* next(Kind kind, std::size_t bytes);
  void note(Kind kind, const Launch& launch, std::span<const std::byte> bytes);
  void note_node();

  CudaDevice& device_;
  CudaDevice::State& state_;
  std::map<std::vector<std::int64_t>, Entry> entries_;
  GraphBudget budget_;
  std::vector<Retired> retired_;
  std::multimap<std::size_t, char*> spare_;  // memory for host values that no graph reads
  GraphCounts counts_;
  // The current pass.
  Mode mode_ = Mode::watching;
  Entry* entry_ = nullptr;
  Notes fresh_;
  bool within_call_ = false;
  cudaStream_t origin_ = nullptr;      // the stream of the capture
  std::vector<cudaGraph_t> captured_;  // of the parts so far; null: an empty part
  bool part_is_empty_ = true;
  std::size_t part_ = 0;                        // index of the current part
  std::vector<std::function<void()>> between_;  // work between the parts
  bool is_between_ = false;                     // such work runs
  std::size_t at_ = 0, staged_ = 0;             // index of the next call; bytes uploaded so far
  std::vector<std::byte> values_;               // those bytes
};

// The first number of a call's identity.
enum Queued : std::int64_t { a_product, a_copy, zeros, a_fork, a_second_branch, a_join };

inline std::int64_t number(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

/// Whether the pass that receives the calls, if any, is dropped.
inline bool is_dropped(const CudaDevice::State& state) {
  return state.recording && state.recording->is_dropped();
}

/// Makes a call that is not one of our kernels, unless a graph contains it. A function that may
/// move memory asks is_dropped() before it queues work.
template <class Function>
void queue(const Cuda& cuda, std::initializer_list<std::int64_t> identity, Function&& function) {
  Graphs* const recording = state_of(cuda).recording;
  if (!recording) return function();
  if (!recording->call({identity.begin(), identity.size()})) return;
  function();
  recording->call_over();
}

}  // namespace nmt::cuda
