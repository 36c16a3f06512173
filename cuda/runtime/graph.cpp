#include "cuda/runtime/graph.h"

#include "cuda/runtime/check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace nmt::cuda {
namespace {

// Keys without a graph.
constexpr std::size_t max_keys = 8192;
// Consecutive misfits, after which a key's work runs call by call.
constexpr int max_misfits = 8;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

bool is_out_of_memory(cudaError_t status) {
  if (status != cudaErrorMemoryAllocation) return false;
  cudaGetLastError();
  return true;
}

template <class T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

bool same(const dim3& a, const dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
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
  counts.held = room_.graphs();
  counts.nodes = room_.calls();
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
  for (const auto& [room, memory] : spare_) cudaFree(memory);  // unchecked
  spare_.clear();
  return any;
}

void Graphs::forget(Entry& entry) {
  forget_parts(entry);
  if (entry.staged) retire({}, entry.staged, entry.room);
  Entry kept;
  static_cast<GraphRoom::Key&>(kept) = entry;
  kept.unfit = entry.unfit;
  kept.seen = entry.seen;
  kept.misfits = entry.misfits;
  kept.calls = entry.calls;
  kept.uploads = entry.uploads;
  entry = std::move(kept);
}

void Graphs::forget_parts(Entry& entry) {
  room_.remove(entry);
  for (Part& part : entry.parts)
    if (part.graph) cudaGraphDestroy(std::exchange(part.graph, nullptr));  // unchecked
  if (!entry.parts.empty()) retire(std::exchange(entry.parts, {}), nullptr, 0);
}

// A launch may still be running: destroyed when it is over, without a wait. Errors are ignored: the
// graph is gone either way.
void Graphs::retire(std::vector<Part> parts, char* staged, std::size_t room) {
  cudaEvent_t done = nullptr;
  const Branch& branch = state_.branch;
  const cudaStream_t stream = branch.current ? branch.stream : state_.stream;  // of all launches
  if (cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess ||
      cudaEventRecord(done, stream) != cudaSuccess) {
    cudaGetLastError();
    cudaDeviceSynchronize();  // unchecked
  }
  retired_.push_back({done, std::move(parts), staged, room});
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
    if (old.staged) spare_.emplace(old.room, old.staged);
    return true;
  });
}

// Memory for an entry's host values; false where there is none.
bool Graphs::reserve(Entry& entry, std::size_t bytes) {
  const auto found = spare_.lower_bound(bytes);
  if (found != spare_.end() && found->first <= 4 * bytes) {
    std::tie(entry.room, entry.staged) = *found;
    spare_.erase(found);
    return true;
  }
  void* data = nullptr;
  if (is_out_of_memory(cudaMalloc(&data, bytes))) return false;
  entry.staged = static_cast<char*>(data);
  entry.room = bytes;
  return true;
}

// Whether the entry may have a graph of so many calls.
bool Graphs::admits(const Entry& entry, std::int64_t calls) {
  collect(false);
  return room_.admits(entry, calls, state_.max_graph_calls,
                      [this](GraphRoom::Key& other) { forget(static_cast<Entry&>(other)); });
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
  room_.use(entry);
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
  values_.resize(entry.room);
  if (!run(Mode::comparing, entry, work)) return false;
  entry.misfits = 0;  // it fits, also if work between graphs ends it now
  if (!start(entry)) return false;
  ++counts_.replayed;
  return true;
}

bool Graphs::capture(Entry& entry, const std::function<void()>& work) {
  if (entry.uploads > entry.room) {
    forget(entry);  // its graph reads the old memory
    if (!reserve(entry, entry.uploads)) return false;
  }
  values_.resize(entry.room);
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
  room_.add(entry, static_cast<std::int64_t>(entry.notes.calls.size()));
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

void Graphs::memory_moves() {
  if (mode_ != Mode::watching) drop();
}

void Graphs::refuse(const char* what) {
  NMT_CHECK(mode_ == Mode::watching, "{} within work that was captured without it", what);
  entry_->unfit = true;
}

// Notes the node of the last kernel: the one dependency of the next call.
void Graphs::note_node() {
  if (fresh_.calls.empty() || fresh_.calls.back().kind != Kind::kernel) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  NMT_CUDA_CHECK(
      cudaStreamGetCaptureInfo(state_.stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else  // CUDA 12 has no edge data
  NMT_CUDA_CHECK(
      cudaStreamGetCaptureInfo(state_.stream, &status, nullptr, nullptr, &nodes, &count));
#endif
  NMT_CHECK(status == cudaStreamCaptureStatusActive && count == 1, "a captured kernel has {} nodes",
            count);
  fresh_.calls.back().node = nodes[0];
}

void Graphs::note(Kind kind, const Launch& launch, std::span<const std::byte> bytes) {
  note_node();
  part_is_empty_ = false;
  fresh_.calls.push_back({kind, launch.kernel, launch.grid, launch.block, launch.shared,
                          fresh_.bytes.size(), bytes.size(), nullptr});
  fresh_.bytes.insert(fresh_.bytes.end(), bytes.begin(), bytes.end());
}

// The next call of the notes; null, and the pass is dropped, where it is of another kind or size.
Graphs::Call* Graphs::next(Kind kind, std::size_t bytes) {
  std::vector<Call>& calls = entry_->notes.calls;
  if (at_ < calls.size() && calls[at_].kind == kind && calls[at_].bytes == bytes)
    return &calls[at_++];
  drop();
  return nullptr;
}

bool Graphs::kernel(const Launch& launch) {
  if (within_call_) return true;
  if (mode_ == Mode::watching) {
    ++at_;
    return true;
  }
  if (mode_ == Mode::dropped) return false;
  if (mode_ == Mode::capturing) {
    note(Kind::kernel, launch, {});
    for (std::size_t i = 0; i < launch.sizes.size(); ++i) {
      const auto* const value = static_cast<const std::byte*>(launch.arguments[i]);
      fresh_.bytes.insert(fresh_.bytes.end(), value, value + launch.sizes[i]);
    }
    fresh_.calls.back().bytes = fresh_.bytes.size() - fresh_.calls.back().begin;
    return true;
  }
  std::size_t bytes = 0;
  for (const std::size_t size : launch.sizes) bytes += size;
  Call* const call = next(Kind::kernel, bytes);
  if (!call) return false;
  if (call->kernel != launch.kernel) {
    drop();
    return false;
  }
  bool equal = same(call->grid, launch.grid) && same(call->block, launch.block) &&
               call->shared == launch.shared;
  std::byte* at = entry_->notes.bytes.data() + call->begin;
  for (std::size_t i = 0; i < launch.sizes.size(); at += launch.sizes[i++]) {
    if (std::memcmp(at, launch.arguments[i], launch.sizes[i]) == 0) continue;
    std::memcpy(at, launch.arguments[i], launch.sizes[i]);
    equal = false;
  }
  if (equal) return false;
  call->grid = launch.grid;
  call->block = launch.block;
  call->shared = launch.shared;
  const cudaKernelNodeParams node{
      const_cast<void*>(launch.kernel),     launch.grid,      launch.block,
      static_cast<unsigned>(launch.shared), launch.arguments, nullptr};
  NMT_CUDA_CHECK(cudaGraphExecKernelNodeSetParams(entry_->parts[part_].exec, call->node, &node));
  ++counts_.changed;
  return false;
}

bool Graphs::call(std::span<const std::int64_t> identity) {
  if (within_call_) return true;
  if (mode_ == Mode::watching) {
    ++at_;
    return within_call_ = true;
  }
  if (mode_ == Mode::dropped) return false;
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    note(Kind::other, {}, bytes);
    return within_call_ = true;
  }
  const Call* const call = next(Kind::other, bytes.size());
  if (call &&
      std::memcmp(entry_->notes.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
    drop();
  return false;
}

void Graphs::between(std::span<const std::int64_t> identity, std::function<void()> work) {
  NMT_CHECK(!within_call_ && !state_.branch.open,
            "work between graphs within a call or between fork() and join()");
  if (mode_ == Mode::watching) {
    ++at_;
    state_.recording = nullptr;  // its own calls are not reported, and it may wait for the device
    run_between(work);
    state_.recording = this;
    return;
  }
  if (mode_ == Mode::dropped) return;
  const std::span<const std::byte> bytes = std::as_bytes(identity);
  if (mode_ == Mode::capturing) {
    const bool is_empty = part_is_empty_;
    note(Kind::between, {}, bytes);
    part_is_empty_ = is_empty;
    end_part();
    begin_part();
  } else {
    const Call* const call = next(Kind::between, bytes.size());
    if (!call) return;
    if (std::memcmp(entry_->notes.bytes.data() + call->begin, bytes.data(), bytes.size()) != 0)
      return drop();
    ++part_;
  }
  between_.push_back(std::move(work));
}

bool Graphs::upload(void* device, const void* host, std::size_t bytes) {
  const std::size_t place = staged_;
  staged_ += rounded_up(bytes);
  if (mode_ == Mode::watching) {
    ++at_;
    return true;
  }
  if (mode_ != Mode::dropped && staged_ > entry_->room) {
    if (mode_ == Mode::capturing) entry_->seen = false;  // measures its uploads again
    drop();
  }
  if (mode_ == Mode::dropped) return false;
  const std::array<std::int64_t, 2> identity{number(device), static_cast<std::int64_t>(bytes)};
  if (mode_ == Mode::capturing) {
    note(Kind::upload, {}, bytes_of(identity));
    NMT_CUDA_CHECK(cudaMemcpyAsync(device, entry_->staged + place, bytes, cudaMemcpyDeviceToDevice,
                                   state_.stream));
  } else {
    const Call* const call = next(Kind::upload, sizeof identity);
    if (!call) return false;
    if (std::memcmp(entry_->notes.bytes.data() + call->begin, identity.data(), sizeof identity) !=
        0) {
      drop();
      return false;
    }
  }
  std::memcpy(values_.data() + place, host, bytes);
  return false;
}

}  // namespace nmt::cuda
