#include "cuda/runtime/graph_budget.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace nmt::cuda {

std::int64_t GraphBudget::use_count(const Key& key) const {
  return key.use_count_ >> std::min<std::int64_t>(halvings_ - key.halvings_, 62);
}

void GraphBudget::count_use(Key& key) {
  key.use_count_ = use_count(key) + 1;
  key.halvings_ = halvings_;
  key.last_use_ = ++uses_;
  if (uses_ % uses_to_halve == 0) ++halvings_;
}

bool GraphBudget::admits(const Key& key, std::int64_t calls, std::int64_t max_calls,
                         const std::function<void(Key&)>& evict) const {
  std::int64_t remaining = calls_ - (key.has_graph_ ? key.calls_ : 0);
  if (remaining + calls <= max_calls) return true;
  std::vector<Key*> others;
  for (Key* const other : keys_)
    if (other != &key) others.push_back(other);
  std::ranges::sort(others, [&](const Key* a, const Key* b) {
    return std::pair(use_count(*a), a->last_use_) < std::pair(use_count(*b), b->last_use_);
  });
  std::size_t evicted = 0;
  while (evicted < others.size() && remaining + calls > max_calls &&
         use_count(*others[evicted]) < use_count(key))
    remaining -= others[evicted++]->calls_;
  if (remaining + calls > max_calls) return false;
  for (std::size_t i = 0; i < evicted; ++i) evict(*others[i]);
  return true;
}

void GraphBudget::add(Key& key, std::int64_t calls) {
  remove(key);
  key.has_graph_ = true;
  key.calls_ = calls;
  calls_ += calls;
  keys_.push_back(&key);
}

void GraphBudget::remove(Key& key) {
  if (!std::exchange(key.has_graph_, false)) return;
  calls_ -= key.calls_;
  std::erase(keys_, &key);
}

}  // namespace nmt::cuda
