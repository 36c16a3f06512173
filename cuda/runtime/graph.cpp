#include "cuda/runtime/graph.h"

#include "cuda/runtime/check.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nmt::cuda {
namespace {

// With more keys, those without a graph are removed.
constexpr std::size_t max_keys = 8192;
// After so many runs in a row whose calls differ from the record, all runs of the key are eager.
constexpr int max_consecutive_misfits = 8;

bool is_out_of_memory(cudaError_t status) {
  if (status != cudaErrorMemoryAllocation) return false;
  cudaGetLastError();
  return true;
}

}  // namespace

// One run of a key's work, whose calls are reported to the cache. The destructor ends an unfinished
// capture.
class GraphCache::Pass {
 public:
  Pass(GraphCache& cache, Mode mode, Entry& entry) : cache_(cache) {
    cache_.mode_ = mode;
    cache_.entry_ = &entry;
    cache_.call_index_ = cache_.upload_bytes_ = cache_.part_index_ = 0;
    cache_.new_record_ = {};
    cache_.work_between_.clear();
    cache_.within_call_ = false;
    cache_.origin_ = cache_.state_.stream;
    if (mode == Mode::capturing) cache_.begin_capture();
    cache_.state_.recording = &cache_;
  }
  ~Pass() {
    cache_.state_.recording = nullptr;
    if (cache_.mode_ == Mode::capturing) cache_.abort_pass();
    cache_.entry_ = nullptr;
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Whether the pass succeeded.
  bool finish() {
    if (cache_.mode_ == Mode::comparing)
      return cache_.call_index_ == cache_.entry_->record.calls.size();
    if (cache_.mode_ == Mode::capturing) {
      cache_.record_node();
      cache_.end_capture();
      cache_.mode_ = Mode::aborted;  // if the lines above fail, the destructor drops all parts
      return true;
    }
    return cache_.mode_ == Mode::eager;
  }

 private:
  GraphCache& cache_;
};

GraphCache::~GraphCache() {
  release();
}

GraphCounts GraphCache::counts() const {
  GraphCounts counts = counts_;
  counts.held = budget_.graphs();
  counts.nodes = budget_.calls();
  return counts;
}

bool GraphCache::release() {
  bool any = false;
  for (auto& [key, entry] : entries_) {
    if ((!entry.has_graph() && !entry.upload_buffer) || &entry == entry_) continue;
    evict(entry);
    any = true;
  }
  any = any || !retired_.empty() || !free_buffers_.empty();
  destroy_retired(true);
  if (!free_buffers_.empty() && state_.before_free) state_.before_free();
  for (const auto& [bytes, memory] : free_buffers_) cudaFree(memory);  // unchecked
  free_buffers_.clear();
  return any;
}

void GraphCache::evict(Entry& entry) {
  destroy_graphs(entry);
  if (entry.upload_buffer) retire({}, entry.upload_buffer, entry.upload_buffer_bytes);
  Entry kept;
  static_cast<GraphBudget::Key&>(kept) = entry;
  kept.is_disabled = entry.is_disabled;
  kept.is_measured = entry.is_measured;
  kept.consecutive_misfits = entry.consecutive_misfits;
  kept.calls = entry.calls;
  kept.upload_bytes = entry.upload_bytes;
  entry = std::move(kept);
}

void GraphCache::destroy_graphs(Entry& entry) {
  budget_.remove(entry);
  for (Part& part : entry.parts)
    if (part.graph) cudaGraphDestroy(std::exchange(part.graph, nullptr));  // unchecked
  if (!entry.parts.empty()) retire(std::exchange(entry.parts, {}), nullptr, 0);
}

// Queues resources that a running launch may still use. destroy_retired() destroys them when the
// event shows that the launch has finished. Errors are ignored: the entry has given up the
// resources.
void GraphCache::retire(std::vector<Part> parts, char* buffer, std::size_t buffer_bytes) {
  cudaEvent_t done = nullptr;
  const Branch& branch = state_.branch;
  const cudaStream_t stream = branch.current ? branch.stream : state_.stream;  // launches graphs
  if (cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess ||
      cudaEventRecord(done, stream) != cudaSuccess) {
    cudaGetLastError();
    cudaDeviceSynchronize();  // unchecked
  }
  retired_.push_back({done, std::move(parts), buffer, buffer_bytes});
}

// Destroys retired resources that no launch uses; `wait`: waits for the launches and destroys all.
void GraphCache::destroy_retired(bool wait) {
  if (wait && state_.while_waiting)  // may throw
    for (const Retired& retired : retired_)
      if (retired.done) wait_for(state_, retired.done);
  std::erase_if(retired_, [&](const Retired& retired) {
    if (retired.done) {
      if (wait) {
        cudaEventSynchronize(retired.done);                            // unchecked
      } else if (cudaEventQuery(retired.done) == cudaErrorNotReady) {  // unchecked
        cudaGetLastError();
        return false;
      }
      cudaEventDestroy(retired.done);  // unchecked
    }
    for (const Part& part : retired.parts)
      if (part.exec) cudaGraphExecDestroy(part.exec);  // unchecked
    if (retired.upload_buffer)
      free_buffers_.emplace(retired.upload_buffer_bytes, retired.upload_buffer);
    return true;
  });
}

// Sets the upload buffer of an entry; false: the device has no memory for it.
bool GraphCache::allocate_upload_buffer(Entry& entry, std::size_t bytes) {
  const auto found = free_buffers_.lower_bound(bytes);
  if (found != free_buffers_.end() && found->first <= 4 * bytes) {
    std::tie(entry.upload_buffer_bytes, entry.upload_buffer) = *found;
    free_buffers_.erase(found);
    return true;
  }
  void* data = nullptr;
  if (is_out_of_memory(cudaMalloc(&data, bytes))) return false;
  entry.upload_buffer = static_cast<char*>(data);
  entry.upload_buffer_bytes = bytes;
  return true;
}

// Whether the budget admits a graph of `calls` calls for the entry; evicts other entries for it.
bool GraphCache::admits(const Entry& entry, std::int64_t calls) {
  destroy_retired(false);
  return budget_.admits(entry, calls, state_.max_graph_calls,
                        [this](GraphBudget::Key& other) { evict(static_cast<Entry&>(other)); });
}

void GraphCache::repeat(std::span<const std::int64_t> key, const std::function<void()>& work) {
  NMT_CHECK(!runs_between_, "recurring work within work between graphs");
  std::vector<std::int64_t> name(key.begin(), key.end());
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() >= max_keys)
      std::erase_if(entries_, [](const auto& item) {
        return !item.second.has_graph() && !item.second.upload_buffer;
      });
    found = entries_.emplace(std::move(name), Entry{}).first;
  }
  Entry& entry = found->second;
  budget_.count_use(entry);
  if (entry.is_disabled || !entry.is_measured) return run_eagerly(entry, work);
  if (entry.has_graph()) {
    if (replay(entry, work)) return;
    ++counts_.misfits;
    if (++entry.consecutive_misfits >= max_consecutive_misfits) {
      entry.is_disabled = true;
      evict(entry);
      return run_eagerly(entry, work);
    }
  }
  if (!admits(entry, entry.calls) || !capture(entry, work)) run_eagerly(entry, work);
}

void GraphCache::run_work_between(const std::function<void()>& work) {
  struct Flag {
    bool& is_set;
    explicit Flag(bool& flag) : is_set(flag) { is_set = true; }
    ~Flag() { is_set = false; }
  } const flag(runs_between_);
  work();
}

bool GraphCache::run_pass(Mode mode, Entry& entry, const std::function<void()>& work) {
  Pass pass(*this, mode, entry);
  work();
  return pass.finish();
}

void GraphCache::run_eagerly(Entry& entry, const std::function<void()>& work) {
  ++counts_.plain;
  if (entry.is_disabled) return work();
  run_pass(Mode::eager, entry, work);
  entry.upload_bytes = upload_bytes_;
  entry.calls = static_cast<std::int64_t>(call_index_);
  entry.is_measured = true;
}

bool GraphCache::replay(Entry& entry, const std::function<void()>& work) {
  upload_values_.resize(entry.upload_buffer_bytes);
  if (!run_pass(Mode::comparing, entry, work)) return false;
  entry.consecutive_misfits = 0;  // the calls match, even if work between graphs throws below
  if (!launch_graphs(entry)) return false;
  ++counts_.replayed;
  return true;
}

bool GraphCache::capture(Entry& entry, const std::function<void()>& work) {
  if (entry.upload_bytes > entry.upload_buffer_bytes) {
    evict(entry);  // its graph reads the old buffer
    if (!allocate_upload_buffer(entry, entry.upload_bytes)) return false;
  }
  upload_values_.resize(entry.upload_buffer_bytes);
  return run_pass(Mode::capturing, entry, work) && instantiate_or_update(entry) &&
         launch_graphs(entry);
}

// Moves the captured graphs to the entry. Existing graphs with the same kinds of calls are updated
// in place. False: the device has no memory for the graphs.
bool GraphCache::instantiate_or_update(Entry& entry) {
  if (update_graphs(entry)) return true;
  destroy_graphs(entry);
  entry.record = std::move(new_record_);
  for (cudaGraph_t& graph : captured_)
    entry.parts.push_back({std::exchange(graph, nullptr), nullptr});
  captured_.clear();
  for (Part& part : entry.parts) {
    if (!part.graph) continue;
    const char* call = "cudaGraphInstantiate";
    cudaError_t status = cudaGraphInstantiate(&part.exec, part.graph, 0);
    // The first part runs before later parts are launched, so all parts allocate their memory now.
    if (status == cudaSuccess && entry.parts.size() > 1) {
      call = "cudaGraphUpload";
      status = cudaGraphUpload(part.exec, state_.stream);
    }
    if (is_out_of_memory(status)) {
      evict(entry);
      release();
      return false;
    }
    check(status, call);
  }
  budget_.add(entry, static_cast<std::int64_t>(entry.record.calls.size()));
  ++counts_.recorded;
  return true;
}

bool GraphCache::update_graphs(Entry& entry) {
  const auto form = [](const RecordedCall& a, const RecordedCall& b) {
    return a.kind == b.kind && a.kernel == b.kernel && a.bytes == b.bytes;
  };
  if (!entry.has_graph() || !std::ranges::equal(entry.record.calls, new_record_.calls, form))
    return false;
  // Since the calls are equal, the entry has as many parts.
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    cudaGraphExecUpdateResultInfo result{};
    if (!captured_[i] ||
        cudaGraphExecUpdate(entry.parts[i].exec, captured_[i], &result) == cudaSuccess)
      continue;
    cudaGetLastError();
    return false;
  }
  // The nodes remain those of the instantiated graphs.
  for (std::size_t i = 0; i < new_record_.calls.size(); ++i)
    new_record_.calls[i].node = entry.record.calls[i].node;
  entry.record = std::move(new_record_);
  destroy_captured();
  ++counts_.updated;
  return true;
}

// False: the device has no memory for the graph.
bool GraphCache::launch_graphs(Entry& entry) {
  // In stream order after the last launch, which may still read the upload buffer.
  device_.to_device(entry.upload_buffer, upload_values_.data(), upload_bytes_);
  const std::vector<std::function<void()>> between = std::exchange(work_between_, {});
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    if (i > 0) run_work_between(between[i - 1]);
    if (!entry.parts[i].exec) continue;
    const cudaError_t status = cudaGraphLaunch(entry.parts[i].exec, state_.stream);
    // A run can start again eagerly only if no part has run. Later parts have their memory
    // (instantiate_or_update()).
    if (i == 0 && is_out_of_memory(status)) {
      evict(entry);
      release();
      return false;
    }
    check(status, "cudaGraphLaunch");
  }
  return true;
}

// Thread-local: calls of other threads do not invalidate the capture.
void GraphCache::begin_capture() {
  capture_is_empty_ = true;
  NMT_CUDA_CHECK(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal));
}

void GraphCache::end_capture() {
  cudaGraph_t graph = nullptr;
  NMT_CUDA_CHECK(cudaStreamEndCapture(origin_, &graph));
  if (capture_is_empty_) cudaGraphDestroy(std::exchange(graph, nullptr));  // unchecked
  captured_.push_back(graph);
}

void GraphCache::destroy_captured() {
  for (const cudaGraph_t graph : captured_)
    if (graph) cudaGraphDestroy(graph);  // unchecked
  captured_.clear();
}

void GraphCache::abort_pass() {
  if (mode_ == Mode::capturing) {
    if (const Branch& branch = state_.branch; branch.open) {
      cudaEventRecord(branch.joined, branch.current ? state_.stream : branch.stream);  // unchecked
      cudaStreamWaitEvent(origin_, branch.joined, 0);                                  // unchecked
    }
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(origin_, &graph);  // unchecked: the result is discarded
    cudaGetLastError();
    captured_.push_back(graph);
    destroy_captured();
  }
  mode_ = Mode::aborted;
}

}  // namespace nmt::cuda
