#pragma once

#include "app/compute.h"
#include "search/crew.h"

#include <deque>
#include <functional>
#include <memory>

namespace nmt::app {

/// The workers of --workers, each with its own threads and memory. Without the option, each thread
/// of --cpu-threads is a worker while there are several batches, and all threads work on a single
/// batch.
class Workers {
 public:
  /// Makes a scorer with the weights of the program's models in a context of its own.
  using Share = std::function<std::shared_ptr<StepScorer>(const Context& context)>;
  /// `compute` and what `share` refers to must outlive the workers.
  Workers(Compute& compute, const Share& share);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Refers to the workers. Empty if batches are translated one at a time.
  const Crew& crew() const { return crew_; }
  Arena& arena(int worker) { return places_[static_cast<std::size_t>(worker)].arena; }

 private:
  struct Place {
    explicit Place(int threads) : pool(threads) {}
    ThreadPool pool;
    Arena arena;
    std::shared_ptr<StepScorer> scorer;
  };
  std::unique_ptr<ThreadPool> pool_;  // one thread per worker; null: the threads of `compute`
  std::deque<Place> places_;
  Crew crew_;
};

}  // namespace nmt::app
