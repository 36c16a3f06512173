#pragma once

#include "core/threads/task_queue.h"
#include "core/threads/thread_pool.h"
#include "kernels/handles.h"
#include "model/step_scorer.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace nmt {

/// A scorer, and the threads that search and score with it.
struct Worker {
  StepScorer* scorer = nullptr;
  Cpu cpu;
};

/// Workers for several batches at a time. Their scorers may share weights but nothing else.
struct Crew {
  std::vector<Worker> workers;  ///< fewer than two: one batch at a time
  /// One thread per worker. A worker's own pool is another one.
  ThreadPool* pool = nullptr;
  std::function<void()> trim;  ///< releases idle memory of the workers; may be empty
  /// Where each thread is a worker: one worker for each of so many batches, at most half as many as
  /// there are workers, with more threads each. None if they cannot be made; may be empty.
  std::function<std::span<const Worker>(std::size_t batches)> widened;

  /// The larger pool, for work without a scorer.
  ThreadPool& widest(ThreadPool& other) const { return size() > other.size() ? *pool : other; }
  /// Number of batches at a time.
  int size() const { return workers.size() > 1 ? static_cast<int>(workers.size()) : 1; }

  /// Calls body(worker, i) for every i in [0, batches). Several batches go to the workers, in
  /// ascending order; a single one, and those for which a worker has no memory (std::bad_alloc), go
  /// to `alone`, one after the other. Results must not depend on the worker. After another
  /// exception no further batch begins, and it is rethrown.
  template <class Body>
  void run(const Worker& alone, std::size_t batches, Body&& body) const {
    if (size() == 1 || batches < 2) {
      for (std::size_t i = 0; i < batches; ++i) body(alone, i);
      return;
    }
    std::span<const Worker> wide;
    if (widened && 2 * batches <= workers.size()) wide = widened(batches);
    const std::vector<std::size_t> left = run_tasks(*pool, batches, [&](int worker, std::size_t i) {
      body(wide.empty() ? workers[static_cast<std::size_t>(worker)] : wide[i], i);
    });
    if (!left.empty() && trim) trim();
    for (const std::size_t i : left) body(alone, i);
  }
};

}  // namespace nmt
