#pragma once

#include "cuda/runtime/state.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace nmt::cuda {

/// A kernel's launch as a graph keeps it.
struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared = 0;
  void** arguments = nullptr;
  std::span<const std::size_t> sizes;  ///< bytes of each argument
};

/// Work that recurs, as CUDA graphs: CudaDevice::repeat(). The first time, a key's work is done
/// call by call. The second time the stream is captured, and beside it the calls are noted: kernels
/// with the bytes of their arguments, products and copies with their sizes and addresses. From then
/// on the host runs the work's code as before, but its calls are only compared with the notes: an
/// equal one costs a comparison, another argument of a kernel one change of the graph's node, host
/// values are gathered. At the end one copy brings those to where the graph reads them, and one
/// launch does it all. Where a call is another than noted nothing has been done yet: the work is
/// captured again, and the graph updated or made anew.
class Graphs {
 public:
  explicit Graphs(CudaDevice& device) : device_(device), state_(device.state()) {}
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  void repeat(std::span<const std::int64_t> key, const std::function<void()>& work);
  /// Gives the memory of all graphs back; false when there was none.
  bool release();
  GraphCounts counts() const;

  // What the calls of the work tell, while state.recording is this. True: make the call, it is done
  // or captured.
  bool kernel(const Launch& launch);
  /// A call of another kind that numbers tell from all others; what it is made of, kernels too, is
  /// told no more until it is over.
  bool call(std::span<const std::int64_t> identity);
  void call_over() { within_call_ = false; }
  /// False: the copy was taken care of.
  bool upload(void* device, const void* host, std::size_t bytes);
  /// Memory is about to come from the driver or to go back: what a graph refers to would not stay,
  /// and neither may happen during a capture. The work will be done again, call by call.
  void memory_moves();
  /// The host waits for the device, or does what no graph can hold: such work is done call by call
  /// for good.
  void refuse(const char* what);

 private:
  enum class Mode { watching, capturing, comparing, dropped };
  enum class Kind { kernel, upload, other };

  // A call and where its bytes stand: arguments; device address and bytes, for an upload; an
  // identity.
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
  struct Entry {
    bool unfit = false, seen = false;
    int misfits = 0;  // in a row
    std::int64_t used = 0;
    Notes notes;
    cudaGraph_t graph = nullptr;  // whose nodes the notes name
    cudaGraphExec_t exec = nullptr;
    std::size_t uploads = 0;  // bytes that the work uploads
    char* staged = nullptr;   // device memory where the graph reads them
    std::size_t room = 0;
  };
  class Pass;

  bool run(Mode mode, Entry& entry, const std::function<void()>& work);
  void do_plainly(Entry& entry, const std::function<void()>& work);
  bool compare(Entry& entry, const std::function<void()>& work);
  bool capture(Entry& entry, const std::function<void()>& work);
  bool take(Entry& entry);
  bool start(Entry& entry);
  void drop();
  void forget(Entry& entry);
  void make_room(std::int64_t calls);
  Call* next(Kind kind, std::size_t bytes);
  void note(Kind kind, const Launch& launch, std::span<const std::byte> bytes);
  void note_node();

  CudaDevice& device_;
  CudaDevice::State& state_;
  std::map<std::vector<std::int64_t>, Entry> entries_;
  std::int64_t uses_ = 0, held_ = 0;  // calls in all graphs
  GraphCounts counts_;
  // The pass that is running.
  Mode mode_ = Mode::watching;
  Entry* entry_ = nullptr;
  Notes fresh_;
  bool within_call_ = false;
  cudaStream_t origin_ = nullptr;  // where the capture began
  cudaGraph_t captured_ = nullptr;
  std::size_t at_ = 0, staged_ = 0;  // the next call; bytes uploaded so far
  std::vector<std::byte> values_;    // those bytes
};

// What the identities of calls begin with.
enum Queued : std::int64_t { a_product, a_copy, zeros, a_fork, a_second_branch, a_join };

inline std::int64_t number(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

/// Tells a call that is no kernel of ours, and makes it unless a graph has it.
template <class Function>
void queue(const Cuda& cuda, std::initializer_list<std::int64_t> identity, Function&& function) {
  Graphs* const recording = state_of(cuda).recording;
  if (!recording) return function();
  if (!recording->call({identity.begin(), identity.size()})) return;
  function();
  recording->call_over();
}

}  // namespace nmt::cuda
