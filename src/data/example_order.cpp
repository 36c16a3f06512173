#include "data/example_order.h"

#include "core/error.h"
#include "core/rng.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace nmt {
namespace {

constexpr std::uint64_t order_stream = 7;  // of the generators of orders, one per epoch

}  // namespace

ExampleOrder::ExampleOrder(std::vector<int> lengths, const DataSpec& spec)
    : lengths_(std::move(lengths)),
      mini_batch_(spec.mini_batch),
      mini_batch_words_(spec.mini_batch_words),
      maxi_batch_(spec.maxi_batch),
      seed_(spec.seed) {
  NMT_CHECK(!lengths_.empty(), "no examples to order");
  if (mini_batch_words_ < 1)
    fail(ExitStatus::usage, "mini-batch-words: {} is below 1", mini_batch_words_);
  if (maxi_batch_ < 1) fail(ExitStatus::usage, "maxi-batch: {} is below 1", maxi_batch_);
  if (mini_batch_ < 0) fail(ExitStatus::usage, "mini-batch: {} is below 0", mini_batch_);
  begin_epoch(0);
}

bool ExampleOrder::fits(std::size_t sentences, int length) const {
  return (mini_batch_ == 0 || sentences <= static_cast<std::size_t>(mini_batch_)) &&
         static_cast<std::int64_t>(sentences) * length <= mini_batch_words_;
}

void ExampleOrder::begin_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  batch_ = 0;
  batches_.clear();
  Rng rng(seed_, order_stream + (static_cast<std::uint64_t>(epoch) << 8));
  std::vector<std::size_t> order(lengths_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  shuffle(order, rng);
  const std::int64_t limit = std::int64_t{maxi_batch_} * mini_batch_words_;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    for (std::int64_t words = 0; end < order.size() && words < limit; ++end)
      words += lengths_[order[end]];
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
                     order.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](std::size_t a, std::size_t b) { return lengths_[a] > lengths_[b]; });
    int longest = 0;
    bool first = true;
    for (std::size_t i = begin; i < end; ++i) {
      if (first || !fits(batches_.back().size() + 1, longest)) {
        batches_.emplace_back();
        longest = lengths_[order[i]];
        first = false;
      }
      batches_.back().push_back(order[i]);
    }
    begin = end;
  }
  shuffle(batches_, rng);
}

std::span<const std::size_t> ExampleOrder::next() {
  if (batch_ == batches_.size()) begin_epoch(epoch_ + 1);
  return batches_[batch_++];
}

double ExampleOrder::epochs() const {
  return static_cast<double>(epoch_) +
         static_cast<double>(batch_) / static_cast<double>(batches_.size());
}

std::string ExampleOrder::position() const {
  return fmt::format("{} {}", epoch_, batch_);
}

void ExampleOrder::restore(const std::string& position) {
  std::int64_t epoch = -1;
  std::size_t batch = 0;
  const char* const end = position.data() + position.size();
  const auto first = std::from_chars(position.data(), end, epoch);
  const bool has_epoch = first.ec == std::errc() && first.ptr != end && *first.ptr == ' ';
  const auto second = std::from_chars(has_epoch ? first.ptr + 1 : end, end, batch);
  if (epoch < 0 || second.ec != std::errc() || second.ptr != end)
    fail(ExitStatus::data,
         "invalid corpus position '{}' in state.json; expected an epoch and a batch, as '0 12'",
         position);
  begin_epoch(epoch);
  if (batch > batches_.size())
    fail(ExitStatus::data,
         "invalid corpus position '{}' in state.json; expected a batch of at most {}", position,
         batches_.size());
  batch_ = batch;
}

std::size_t ExampleOrder::longest() const {
  return static_cast<std::size_t>(std::max_element(lengths_.begin(), lengths_.end()) -
                                  lengths_.begin());
}

std::size_t ExampleOrder::longest_count() const {
  std::size_t count = 1;
  while (count < lengths_.size() && fits(count + 1, lengths_[longest()])) ++count;
  return count;
}

}  // namespace nmt
