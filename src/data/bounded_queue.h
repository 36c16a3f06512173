#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace nmt {

/// A thread-safe FIFO queue between a producer and a consumer, with at most `capacity` elements.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Producer: blocks while the queue is full. Returns false after close(): the consumer wants no
  /// more elements.
  bool push(T thing) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || things_.size() < capacity_; });
    if (closed_) return false;
    things_.push_back(std::move(thing));
    filled_.notify_one();
    return true;
  }
  /// Producer: reports an error. pop() returns the elements pushed before it, then throws it on
  /// every call.
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    filled_.notify_one();
  }

  /// Consumer: blocks until there is an element.
  T pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return error_ || !things_.empty(); });
    if (things_.empty()) std::rethrow_exception(error_);
    T thing = std::move(things_.front());
    things_.pop_front();
    room_.notify_one();
    return thing;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::deque<T> things_;
  std::size_t capacity_;
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace nmt
