#include "cuda/runtime/graph_budget.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace nmt::cuda {

std::int64_t GraphBudget::count(const Key& key) const {
  return key.count_ >> std::min<std::int64_t>(halvings_ - key.halvings_, 62);
}

void GraphBudget::use(Key& key) {
  key.count_ = count(key) + 1;
  key.halvings_ = halvings_;
  key.last_ = ++uses_;
  if (uses_ % uses_to_halve == 0) ++halvings_;
}

bool GraphBudget::admits(const Key& key, std::int64_t calls, std::int64_t most,
                         const std::function<void(Key&)>& evict) const {
  std::int64_t left = calls_ - (key.has_graph_ ? key.calls_ : 0);
  if (left + calls <= most) return true;
  std::vector<Key*> others;
  for (Key* const other : keys_)
    if (other != &key) others.push_back(other);
  std::ranges::sort(others, [&](const Key* a, const Key* b) {
    return std::pair(count(*a), a->last_) < std::pair(count(*b), b->last_);
  });
  std::size_t evicted = 0;
  while (evicted < others.size() && left + calls > most && count(*others[evicted]) < count(key))
    left -= others[evicted++]->calls_;
  if (left + calls > most) return false;
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
