#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace nmt::cuda {

/// Decides which keys of recurring work have a graph. The graphs together hold a limited number of
/// calls: at the limit, a key evicts the graphs of keys that are used less often than itself.
/// Without this rule, keys that rarely recur would evict each other, and most work would be
/// captured without ever being replayed. scripts/bench/simulate_graphs.py has the same rule. No GPU
/// is needed.
class GraphBudget {
 public:
  /// After so many uses, all use counts are halved, so that keys that no longer recur are evicted.
  static constexpr std::int64_t uses_to_halve = 8192;

  /// The uses of a key and the size of its graph. A key with a graph keeps its address.
  class Key {
   public:
    bool has_graph() const { return has_graph_; }

   private:
    friend class GraphBudget;
    std::int64_t last_use_ = 0;                  // index of the last use
    std::int64_t use_count_ = 0, halvings_ = 0;  // uses, as counted after so many halvings
    std::int64_t calls_ = 0;
    bool has_graph_ = false;
  };

  /// Counts a use.
  void count_use(Key& key);
  /// Whether the key may have a graph of `calls` calls, where all graphs together have at most
  /// `max_calls`. Calls evict(other), which must call remove(other), for each key that loses its
  /// graph. The key's own current graph does not count.
  bool admits(const Key& key, std::int64_t calls, std::int64_t max_calls,
              const std::function<void(Key&)>& evict) const;
  /// The key has a graph of `calls` calls.
  void add(Key& key, std::int64_t calls);
  /// The key has no graph any more; nothing happens if it had none.
  void remove(Key& key);

  /// The number of graphs, and of their calls.
  std::int64_t graphs() const { return static_cast<std::int64_t>(keys_.size()); }
  std::int64_t calls() const { return calls_; }

 private:
  std::int64_t use_count(const Key& key) const;

  std::vector<Key*> keys_;  // with a graph
  std::int64_t calls_ = 0, uses_ = 0, halvings_ = 0;
};

}  // namespace nmt::cuda
