#pragma once

#include "app/compute/compute.h"
#include "search/crew.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace nmt::app {

/// The workers of --workers, each with its own threads and memory. Without the option, each thread
/// of --cpu-threads is a worker while there are at least half as many batches; fewer batches share
/// the threads, and all threads work on a single batch.
class Workers {
 public:
  /// Makes a scorer with the weights of the program's models in a context of its own.
  using ScorerFactory = std::function<std::shared_ptr<StepScorer>(const Context& context)>;
  /// `compute` and what `share` refers to must outlive the workers, which may call it later.
  Workers(Compute& compute, const ScorerFactory& make_scorer);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Refers to the workers. Empty if batches are translated one at a time.
  const Crew& crew() const { return crew_; }
  Arena& arena(int worker) { return group_.resources[static_cast<std::size_t>(worker)].arena; }

 private:
  struct Resources {
    explicit Resources(int threads) : pool(threads) {}
    ThreadPool pool;
    Arena arena{std::size_t{1} << 20};  // values only: smaller chunks have smaller gaps
    std::shared_ptr<StepScorer> scorer;
  };
  struct Group {
    std::deque<Resources> resources;
    std::vector<Worker> workers;
  };
  void fill(Group& group, int workers, int threads);
  std::span<const Worker> widened(std::size_t batches);

  Compute& compute_;
  ScorerFactory make_scorer_;
  std::unique_ptr<ThreadPool> pool_;  // one thread per worker; null: the threads of `compute`
  Group group_;
  std::map<int, Group> wider_;  // by the threads of a worker, as they are needed
  Crew crew_;
};

}  // namespace nmt::app
