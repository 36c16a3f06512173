#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace nmt::cuda {

/// Which keys of recurring work have a graph. The graphs together hold a limited number of calls:
/// where there is no room, graphs of keys that are used less often make place for a key that is
/// used more often. Without this rule, keys that rarely recur would evict each other, and most work
/// would be captured without ever being replayed. scripts/bench/simulate_graphs.py has the same
/// rule. No GPU is needed.
class GraphBudget {
 public:
  /// After so many uses, all counts of uses are halved, so that keys of the past make place.
  static constexpr std::int64_t uses_to_halve = 8192;

  /// The uses of a key and the size of its graph. A key with a graph keeps its address.
  class Key {
   public:
    bool has_graph() const { return has_graph_; }

   private:
    friend class GraphBudget;
    std::int64_t last_ = 0;                  // use
    std::int64_t count_ = 0, halvings_ = 0;  // uses, as they were after so many halvings
    std::int64_t calls_ = 0;
    bool has_graph_ = false;
  };

  /// Counts a use.
  void use(Key& key);
  /// Whether the key may have a graph of `calls` calls, if all graphs have at most `most`. Calls
  /// evict(other) for each key that must lose its graph for it, which calls remove(). The present
  /// graph of the key itself takes no room.
  bool admits(const Key& key, std::int64_t calls, std::int64_t most,
              const std::function<void(Key&)>& evict) const;
  /// The key has a graph of `calls` calls.
  void add(Key& key, std::int64_t calls);
  /// The key has no graph any more; nothing happens if it had none.
  void remove(Key& key);

  /// All graphs, and their calls.
  std::int64_t graphs() const { return static_cast<std::int64_t>(keys_.size()); }
  std::int64_t calls() const { return calls_; }

 private:
  std::int64_t count(const Key& key) const;

  std::vector<Key*> keys_;  // with a graph
  std::int64_t calls_ = 0, uses_ = 0, halvings_ = 0;
};

}  // namespace nmt::cuda
