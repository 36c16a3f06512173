#include "nmt/data/training_data.h"

#include "nmt/core/error.h"
#include "nmt/core/rng.h"
#include "nmt/data/bounded_queue.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "window.h"

namespace nmt {

namespace {

constexpr std::size_t kBatchesAhead = 64;
// Streams of random numbers: one a pass for its order, one for the order of its windows' batches.
constexpr std::uint64_t kOrderStream = std::uint64_t{1} << 32, kWindowStream = std::uint64_t{2} << 32;

/// Fisher and Yates, as Durstenfeld 1964 has it.
template <class T>
void shuffle(std::vector<T>& things, Rng& rng) {
  for (std::size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[rng.below(i)]);
}

struct Item {
  Batch batch;
  LoaderState after;
  DropCounts drops;
};

}  // namespace

struct TrainingData::Impl {
  Loading loading;
  Share share;
  std::vector<std::uint32_t> lines;  // that take part, in the corpus's order
  LoaderState state;
  DropCounts drops;
  std::unique_ptr<BoundedQueue<Item>> queue;
  std::thread thread;

  Impl(Loading how, const Share& which) : loading(std::move(how)), share(which) {}
  ~Impl() { stop(); }

  void start() {
    queue = std::make_unique<BoundedQueue<Item>>(kBatchesAhead);
    thread = std::thread([this, from = state] {
      try {
        produce(from);
      } catch (...) {
        queue->fail(std::current_exception());
      }
    });
  }
  void stop() {
    if (!thread.joinable()) return;
    queue->close();
    thread.join();
  }
  void produce(LoaderState at) const;
  Item item(const Window& window, const std::vector<std::size_t>& pairs) const;
};

Item TrainingData::Impl::item(const Window& window, const std::vector<std::size_t>& pairs) const {
  std::vector<const Ids*> sources, targets;
  std::vector<std::int64_t> from;
  const auto step = static_cast<std::size_t>(share.size);
  for (std::size_t i = static_cast<std::size_t>(share.rank); i < pairs.size(); i += step) {
    const EncodedPair& pair = window.pairs[pairs[i]];
    sources.push_back(&pair.source);
    targets.push_back(&pair.target);
    from.push_back(pair.line);
  }
  if (sources.empty()) return {};
  Item made{make_batch(sources, targets, loading.target.bos(), loading.target.eos()), {}, {}};
  made.batch.lines = std::move(from);
  return made;
}

/// Makes batch after batch from a state on, until nobody wants more. A batch is held back until the next is known,
/// since only then it is known whether it is the last of its pass.
void TrainingData::Impl::produce(LoaderState at) const {
  const std::uint64_t seed = loading.spec.seed;
  const auto total = static_cast<std::int64_t>(lines.size());
  const auto stop = [&] { return queue->closed(); };
  for (;; at = LoaderState{.epoch = at.epoch + 1}) {
    std::vector<std::uint32_t> order = lines;
    Rng order_rng(seed, kOrderStream + static_cast<std::uint64_t>(at.epoch));
    shuffle(order, order_rng);

    std::optional<Item> held;
    while (at.window < total) {
      const Window window = loading.window(order, at.window, stop);
      if (stop()) return;
      std::vector<std::vector<std::size_t>> batches = loading.cut(window);
      Rng window_rng(seed, kWindowStream + static_cast<std::uint64_t>(at.epoch),
                     static_cast<std::uint64_t>(at.window) << 24);
      shuffle(batches, window_rng);

      const auto count = static_cast<std::int64_t>(batches.size());
      if (at.batch > 0 && at.batch >= count) {
        fail(ExitStatus::data,
             "position in the corpus: batch {} of a window of {}; the corpus or its settings have changed", at.batch,
             count);
      }
      LoaderState after_window{.epoch = at.epoch, .window = window.end, .drops = at.drops};
      after_window.drops += window.drops;
      for (std::int64_t b = at.batch; b < count; ++b) {
        if (held && !queue->push(*std::move(held))) return;
        held = item(window, batches[static_cast<std::size_t>(b)]);
        held->after = after_window;
        if (b + 1 < count) held->after = {.epoch = at.epoch, .window = at.window, .batch = b + 1, .drops = at.drops};
        const double part = static_cast<double>(b + 1) / static_cast<double>(count);
        const double done = static_cast<double>(at.window) + static_cast<double>(window.end - at.window) * part;
        held->after.epochs = static_cast<double>(at.epoch) + done / static_cast<double>(total);
        held->drops = after_window.drops;
      }
      at = after_window;
    }
    if (!held) {
      fail(ExitStatus::data, "{} and {}: none of {} pairs can be used: {}", loading.corpus.file(Side::source).path(),
           loading.corpus.file(Side::target).path(), total, at.drops.text(loading.spec.max_length));
    }
    held->after = {.epoch = at.epoch + 1, .epochs = static_cast<double>(at.epoch + 1)};
    held->drops = at.drops;
    if (!queue->push(*std::move(held))) return;
  }
}

TrainingData::TrainingData(const ParallelCorpus& corpus, const Vocabulary& source, const Vocabulary& target,
                           const DataSpec& spec, std::span<const std::int64_t> excluded, const Share& share)
    : impl_(std::make_unique<Impl>(Loading{corpus, source, target, spec}, share)) {
  NMT_CHECK(share.rank >= 0 && share.rank < share.size, "training data: no part {} of {}", share.rank, share.size);
  impl_->loading.check();
  if (corpus.pairs() > std::numeric_limits<std::uint32_t>::max()) {
    fail(ExitStatus::data, "{}: {} lines, at most {} can be shuffled", corpus.file(Side::source).path(), corpus.pairs(),
         std::numeric_limits<std::uint32_t>::max());
  }
  NMT_CHECK(std::is_sorted(excluded.begin(), excluded.end()), "training data: the excluded lines are not sorted");
  impl_->lines.reserve(static_cast<std::size_t>(corpus.pairs()));
  auto next_excluded = excluded.begin();
  for (std::int64_t i = 0; i < corpus.pairs(); ++i) {
    while (next_excluded != excluded.end() && *next_excluded < i) ++next_excluded;
    if (next_excluded == excluded.end() || *next_excluded != i) impl_->lines.push_back(static_cast<std::uint32_t>(i));
  }
  if (impl_->lines.empty()) {
    fail(ExitStatus::data, "{}: none of {} lines is left for training", corpus.file(Side::source).path(),
         corpus.pairs());
  }
}

TrainingData::~TrainingData() = default;

Batch TrainingData::next() {
  if (!impl_->thread.joinable()) impl_->start();
  Item item = impl_->queue->pop();
  impl_->state = item.after;
  impl_->drops = item.drops;
  return std::move(item.batch);
}

const LoaderState& TrainingData::state() const {
  return impl_->state;
}

void TrainingData::restore(const LoaderState& state) {
  impl_->stop();
  if (state.window >= pairs()) {
    fail(ExitStatus::data, "position in the corpus: pair {} of {}; the corpus has changed", state.window, pairs());
  }
  impl_->state = state;
  impl_->drops = state.drops;
}

const DropCounts& TrainingData::drops() const {
  return impl_->drops;
}

std::int64_t TrainingData::pairs() const {
  return static_cast<std::int64_t>(impl_->lines.size());
}

std::vector<Batch> TrainingData::largest_batches() const {
  std::vector<Batch> batches = impl_->loading.largest(impl_->lines);
  if (impl_->share.size > 1)
    for (Batch& batch : batches) batch = take(batch, impl_->share);
  return batches;
}

}  // namespace nmt
