#include "cuda/runtime/graph.h"

#include "cuda/runtime/check.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nmt::cuda {
namespace {

// Keys without a graph.
constexpr std::size_t max_keys = 8192;
// Consecutive misfits, after which a key's work runs call by call.
constexpr int max_misfits = 8;

bool is_out_of_memory(cudaError_t status) {
  if (status != cudaErrorMemoryAllocation) return false;
  cudaGetLastError();
  return true;
}

}  // namespace

// Directs the work's calls to `graphs` during its lifetime. Its destructor ends an unfinished
// capture.
class Graphs::Pass {
 public:
  Pass(Graphs& graphs, Mode mode, Entry& entry) : graphs_(graphs) {
    graphs_.mode_ = mode;
    graphs_.entry_ = &entry;
    graphs_.at_ = graphs_.staged_ = graphs_.part_ = 0;
    graphs_.fresh_ = {};
    graphs_.between_.clear();
    graphs_.within_call_ = false;
    graphs_.origin_ = graphs_.state_.stream;
    if (mode == Mode::capturing) graphs_.begin_part();
    graphs_.state_.recording = &graphs_;
  }
  ~Pass() {
    graphs_.state_.recording = nullptr;
    if (graphs_.mode_ == Mode::capturing) graphs_.drop();
    graphs_.entry_ = nullptr;
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Whether the pass succeeded.
  bool finish() {
    if (graphs_.mode_ == Mode::comparing) return graphs_.at_ == graphs_.entry_->notes.calls.size();
    if (graphs_.mode_ == Mode::capturing) {
      graphs_.note_node();
      graphs_.end_part();
      graphs_.mode_ = Mode::dropped;  // if the lines above fail, the destructor drops all parts
      return true;
    }
    return graphs_.mode_ == Mode::watching;
  }

 private:
  Graphs& graphs_;
};

Graphs::~Graphs() {
  release();
}

GraphCounts Graphs::counts() const {
  GraphCounts counts = counts_;
  counts.held = budget_.graphs();
  counts.nodes = budget_.calls();
  return counts;
}

bool Graphs::release() {
  bool any = false;
  for (auto& [key, entry] : entries_) {
    if ((!entry.has_graph() && !entry.staged) || &entry == entry_) continue;
    forget(entry);
    any = true;
  }
  any = any || !retired_.empty() || !spare_.empty();
  collect(true);
  if (!spare_.empty() && state_.before_free) state_.before_free();
  for (const auto& [bytes, memory] : spare_) cudaFree(memory);  // unchecked
  spare_.clear();
  return any;
}

void Graphs::forget(Entry& entry) {
  forget_parts(entry);
  if (entry.staged) retire({}, entry.staged, entry.staged_bytes);
  Entry kept;
  static_cast<GraphBudget::Key&>(kept) = entry;
  kept.unfit = entry.unfit;
  kept.seen = entry.seen;
  kept.misfits = entry.misfits;
  kept.calls = entry.calls;
  kept.uploads = entry.uploads;
  entry = std::move(kept);
}

void Graphs::forget_parts(Entry& entry) {
  budget_.remove(entry);
  for (Part& part : entry.parts)
    if (part.graph) cudaGraphDestroy(std::exchange(part.graph, nullptr));  // unchecked
  if (!entry.parts.empty()) retire(std::exchange(entry.parts, {}), nullptr, 0);
}

// A launch may still be running: destroyed when it is over, without a wait. Errors are ignored: the
// graph is gone either way.
void Graphs::retire(std::vector<Part> parts, char* staged, std::size_t staged_bytes) {
  cudaEvent_t done = nullptr;
  const Branch& branch = state_.branch;
  const cudaStream_t stream = branch.current ? branch.stream : state_.stream;  // of all launches
  if (cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess ||
      cudaEventRecord(done, stream) != cudaSuccess) {
    cudaGetLastError();
    cudaDeviceSynchronize();  // unchecked
  }
  retired_.push_back({done, std::move(parts), staged, staged_bytes});
}

// Destroys what no launch uses any more; `wait`: all that is retired.
void Graphs::collect(bool wait) {
  if (wait && state_.while_waiting)  // may throw
    for (const Retired& old : retired_)
      if (old.done) wait_for(state_, old.done);
  std::erase_if(retired_, [&](const Retired& old) {
    if (old.done) {
      if (wait) {
        cudaEventSynchronize(old.done);                            // unchecked
      } else if (cudaEventQuery(old.done) == cudaErrorNotReady) {  // unchecked
        cudaGetLastError();
        return false;
      }
      cudaEventDestroy(old.done);  // unchecked
    }
    for (const Part& part : old.parts)
      if (part.exec) cudaGraphExecDestroy(part.exec);  // unchecked
    if (old.staged) spare_.emplace(old.staged_bytes, old.staged);
    return true;
  });
}

// Memory for an entry's host values; false where there is none.
bool Graphs::reserve(Entry& entry, std::size_t bytes) {
  const auto found = spare_.lower_bound(bytes);
  if (found != spare_.end() && found->first <= 4 * bytes) {
    std::tie(entry.staged_bytes, entry.staged) = *found;
    spare_.erase(found);
    return true;
  }
  void* data = nullptr;
  if (is_out_of_memory(cudaMalloc(&data, bytes))) return false;
  entry.staged = static_cast<char*>(data);
  entry.staged_bytes = bytes;
  return true;
}

// Whether the entry may have a graph of so many calls.
bool Graphs::admits(const Entry& entry, std::int64_t calls) {
  collect(false);
  return budget_.admits(entry, calls, state_.max_graph_calls,
                        [this](GraphBudget::Key& other) { forget(static_cast<Entry&>(other)); });
}

void Graphs::repeat(std::span<const std::int64_t> key, const std::function<void()>& work) {
  NMT_CHECK(!is_between_, "recurring work within work between graphs");
  std::vector<std::int64_t> name(key.begin(), key.end());
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() >= max_keys)
      std::erase_if(entries_, [](const auto& item) {
        return !item.second.has_graph() && !item.second.staged;
      });
    found = entries_.emplace(std::move(name), Entry{}).first;
  }
  Entry& entry = found->second;
  budget_.use(entry);
  if (entry.unfit || !entry.seen) return do_plainly(entry, work);
  if (entry.has_graph()) {
    if (compare(entry, work)) return;
    ++counts_.misfits;
    if (++entry.misfits >= max_misfits) {
      entry.unfit = true;
      forget(entry);
      return do_plainly(entry, work);
    }
  }
  if (!admits(entry, entry.calls) || !capture(entry, work)) do_plainly(entry, work);
}

void Graphs::run_between(const std::function<void()>& work) {
  struct Flag {
    bool& is_set;
    explicit Flag(bool& flag) : is_set(flag) { is_set = true; }
    ~Flag() { is_set = false; }
  } const flag(is_between_);
  work();
}

bool Graphs::run(Mode mode, Entry& entry, const std::function<void()>& work) {
  Pass pass(*this, mode, entry);
  work();
  return pass.finish();
}

void Graphs::do_plainly(Entry& entry, const std::function<void()>& work) {
  ++counts_.plain;
  if (entry.unfit) return work();
  run(Mode::watching, entry, work);
  entry.uploads = staged_;
  entry.calls = static_cast<std::int64_t>(at_);
  entry.seen = true;
}

bool Graphs::compare(Entry& entry, const std::function<void()>& work) {
  values_.resize(entry.staged_bytes);
  if (!run(Mode::comparing, entry, work)) return false;
  entry.misfits = 0;  // it fits, also if work between graphs ends it now
  if (!start(entry)) return false;
  ++counts_.replayed;
  return true;
}

bool Graphs::capture(Entry& entry, const std::function<void()>& work) {
  if (entry.uploads > entry.staged_bytes) {
    forget(entry);  // its graph reads the old memory
    if (!reserve(entry, entry.uploads)) return false;
  }
  values_.resize(entry.staged_bytes);
  return run(Mode::capturing, entry, work) && take(entry) && start(entry);
}

// The captured graphs become the entry's. Existing graphs of the same form are updated in place.
bool Graphs::take(Entry& entry) {
  if (update(entry)) return true;
  forget_parts(entry);
  entry.notes = std::move(fresh_);
  for (cudaGraph_t& graph : captured_)
    entry.parts.push_back({std::exchange(graph, nullptr), nullptr});
  captured_.clear();
  for (Part& part : entry.parts) {
    if (!part.graph) continue;
    const char* call = "cudaGraphInstantiate";
    cudaError_t status = cudaGraphInstantiate(&part.exec, part.graph, 0);
    // The first part runs before the others are launched, which must then have their memory.
    if (status == cudaSuccess && entry.parts.size() > 1) {
      call = "cudaGraphUpload";
      status = cudaGraphUpload(part.exec, state_.stream);
    }
    if (is_out_of_memory(status)) {
      forget(entry);
      release();
      return false;
    }
    check(status, call);
  }
  budget_.add(entry, static_cast<std::int64_t>(entry.notes.calls.size()));
  ++counts_.recorded;
  return true;
}

bool Graphs::update(Entry& entry) {
  const auto form = [](const Call& a, const Call& b) {
    return a.kind == b.kind && a.kernel == b.kernel && a.bytes == b.bytes;
  };
  if (!entry.has_graph() || !std::ranges::equal(entry.notes.calls, fresh_.calls, form))
    return false;
  for (std::size_t i = 0; i < captured_.size(); ++i) {  // as many as the entry has, of its form
    cudaGraphExecUpdateResultInfo result{};
    if (!captured_[i] ||
        cudaGraphExecUpdate(entry.parts[i].exec, captured_[i], &result) == cudaSuccess)
      continue;
    cudaGetLastError();
    return false;
  }
  // The nodes are still those of the graphs that were instantiated.
  for (std::size_t i = 0; i < fresh_.calls.size(); ++i)
    fresh_.calls[i].node = entry.notes.calls[i].node;
  entry.notes = std::move(fresh_);
  discard_captured();
  ++counts_.updated;
  return true;
}

// False where the device has no memory for the graph.
bool Graphs::start(Entry& entry) {
  // In stream order after the last launch, which may still read the values.
  device_.to_device(entry.staged, values_.data(), staged_);
  const std::vector<std::function<void()>> between = std::exchange(between_, {});
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    if (i > 0) run_between(between[i - 1]);
    if (!entry.parts[i].exec) continue;
    const cudaError_t status = cudaGraphLaunch(entry.parts[i].exec, state_.stream);
    // Call by call only where nothing has run; a later part has its memory (take()).
    if (i == 0 && is_out_of_memory(status)) {
      forget(entry);
      release();
      return false;
    }
    check(status, "cudaGraphLaunch");
  }
  return true;
}

// The capture is of this thread alone: calls of other threads do not interfere.
void Graphs::begin_part() {
  part_is_empty_ = true;
  NMT_CUDA_CHECK(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal));
}

void Graphs::end_part() {
  cudaGraph_t graph = nullptr;
  NMT_CUDA_CHECK(cudaStreamEndCapture(origin_, &graph));
  if (part_is_empty_) cudaGraphDestroy(std::exchange(graph, nullptr));  // unchecked
  captured_.push_back(graph);
}

void Graphs::discard_captured() {
  for (const cudaGraph_t graph : captured_)
    if (graph) cudaGraphDestroy(graph);  // unchecked
  captured_.clear();
}

void Graphs::drop() {
  if (mode_ == Mode::capturing) {
    if (const Branch& branch = state_.branch; branch.open) {
      cudaEventRecord(branch.joined, branch.current ? state_.stream : branch.stream);  // unchecked
      cudaStreamWaitEvent(origin_, branch.joined, 0);                                  // unchecked
    }
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(origin_, &graph);  // unchecked: the result is discarded
    cudaGetLastError();
    captured_.push_back(graph);
    discard_captured();
  }
  mode_ = Mode::dropped;
}

}  // namespace nmt::cuda
