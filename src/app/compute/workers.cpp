#include "app/compute/workers.h"

#include "core/error.h"
#include "core/log.h"

#include <bit>
#include <utility>

namespace nmt::app {

Workers::Workers(Compute& compute, const ScorerFactory& make_scorer)
    : compute_(compute), make_scorer_(make_scorer) {
  const int workers = compute.workers();
  if (workers < 2) return;
  if (!compute.shares_threads()) pool_ = std::make_unique<ThreadPool>(workers);
  crew_.pool = pool_ ? pool_.get() : &compute.pool();
  fill(group_, workers, compute.worker_threads());
  crew_.workers = group_.workers;
  crew_.trim = [this] {
    for (Resources& worker : group_.resources) worker.arena.trim();
    for (auto& [threads, group] : wider_)
      for (Resources& worker : group.resources) worker.arena.trim();
  };
  if (compute.shares_threads())
    crew_.widened = [this](std::size_t batches) { return widened(batches); };
}

void Workers::fill(Group& group, int workers, int threads) {
  for (int i = 0; i < workers; ++i) {
    Resources& worker = group.resources.emplace_back(threads);
    Context context = compute_.context(worker.arena);
    context.cpu.pool = &worker.pool;
    worker.scorer = make_scorer_(context);
    group.workers.push_back({worker.scorer.get(), context.cpu});
  }
}

// Powers of two limit the number of groups, and with it that of threads.
std::span<const Worker> Workers::widened(std::size_t batches) {
  const auto all = static_cast<unsigned>(compute_.pool().size());
  const unsigned threads = std::bit_floor(all / static_cast<unsigned>(batches));
  Group& group = wider_[static_cast<int>(threads)];
  if (group.workers.empty()) {
    Group made;
    try {
      fill(made, static_cast<int>(all / threads), static_cast<int>(threads));
    } catch (const Error& error) {  // no more threads
      log::debug("{}", error.what());
      return {};
    }
    group = std::move(made);
  }
  return group.workers;
}

}  // namespace nmt::app
