#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace nmt {

class ThreadPool;

/// Calls task(worker, i) once for every i in [0, tasks), in ascending order, each as soon as a
/// worker of the pool is free; 0 <= worker < pool.size(). Tasks of the same worker never overlap. A
/// task that throws std::bad_alloc is put off, since the others may hold the memory: the numbers of
/// such tasks are returned, ascending. After any other exception no further task begins, and it is
/// rethrown.
std::vector<std::size_t> run_tasks(ThreadPool& pool, std::size_t tasks,
                                   const std::function<void(int worker, std::size_t i)>& task);

}  // namespace nmt
