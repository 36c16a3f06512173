#include "app/workers.h"

namespace nmt::app {

Workers::Workers(Compute& compute, const Share& share) {
  const int workers = compute.workers();
  if (workers < 2) return;
  if (!compute.shares_threads()) pool_ = std::make_unique<ThreadPool>(workers);
  crew_.pool = pool_ ? pool_.get() : &compute.pool();
  for (int i = 0; i < workers; ++i) {
    Place& place = places_.emplace_back(compute.worker_threads());
    Context context = compute.context(place.arena);
    context.cpu.pool = &place.pool;
    place.scorer = share(context);
    crew_.workers.push_back({place.scorer.get(), context.cpu});
  }
  crew_.trim = [this] {
    for (Place& place : places_) place.arena.trim();
  };
}

}  // namespace nmt::app
