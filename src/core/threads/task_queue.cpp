#include "core/threads/task_queue.h"

#include "core/threads/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

namespace nmt {

std::vector<std::size_t> run_tasks(ThreadPool& pool, std::size_t tasks,
                                   const std::function<void(int worker, std::size_t i)>& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::vector<std::size_t> put_off;
  put_off.reserve(tasks);  // so that a worker without memory can still report it
  pool.run([&](int worker) {
    for (std::size_t i; (i = next.fetch_add(1)) < tasks;) {
      try {
        task(worker, i);
      } catch (const std::bad_alloc&) {
        const std::lock_guard lock(mutex);
        put_off.push_back(i);
      } catch (...) {
        next = tasks;
        throw;
      }
    }
  });
  std::sort(put_off.begin(), put_off.end());
  return put_off;
}

}  // namespace nmt
