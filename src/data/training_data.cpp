#include "data/training_data.h"

#include "core/error.h"
#include "core/rng.h"
#include "data/alignment/batch_links.h"
#include "data/bounded_queue.h"
#include "data/pair_loader.h"
#include "data/pair_stream.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

namespace nmt {

namespace {

constexpr std::size_t kBatchesAhead = 64;
// Random number streams: one per epoch, for the order of the batches of its windows.
// pair_stream.cpp has those for the order of the pairs.
constexpr std::uint64_t kWindowStream = std::uint64_t{2} << 32;

/// What the reading thread produces: a batch, or its share of a piece of text for the exchange.
struct Item {
  Batch batch = {};
  LoaderState after = {};
  DropCounts drops = {};
  std::optional<Ids> piece = {};
};

/// Thrown in the reading thread to stop it.
struct Stopped {};

}  // namespace

struct TrainingData::Impl {
  PairLoader loader;
  RankSlice share;
  Gather gather;
  std::vector<std::uint32_t> lines;  // lines in use, in the order of the corpus
  LoaderState state;
  DropCounts drops;
  std::unique_ptr<BoundedQueue<Item>> queue;
  std::unique_ptr<BoundedQueue<std::vector<Ids>>> gathered;
  std::atomic<std::int64_t> encoded = 0;
  std::thread thread;

  Impl(PairLoader how, const RankSlice& which, Gather by)
      : loader(std::move(how)), share(which), gather(std::move(by)) {}
  ~Impl() { stop(); }

  void start() {
    queue = std::make_unique<BoundedQueue<Item>>(kBatchesAhead);
    gathered =
        std::make_unique<BoundedQueue<std::vector<Ids>>>(std::numeric_limits<std::size_t>::max());
    try {
      thread = std::thread([this, from = state] {
        try {
          produce(from);
        } catch (const Stopped&) {
        } catch (...) {
          queue->fail(std::current_exception());
        }
      });
    } catch (const std::system_error& error) {
      fail(ExitStatus::failed, "cannot start a thread that reads the training text: {}",
           error.code().message());
    }
  }
  void stop() {
    if (!thread.joinable()) return;
    queue->close();
    gathered->fail(std::make_exception_ptr(Stopped()));
    thread.join();
  }
  PairStream::Exchange exchange();
  void push(Item item) {
    if (!queue->push(std::move(item))) throw Stopped();
  }
  void produce(LoaderState at);
  BatchShape shape_of_shares(const Window& window, const std::vector<std::size_t>& pairs) const;
  Item item(const Window& window, const std::vector<std::size_t>& pairs) const;
};

// A shape that holds the share of each process.
BatchShape TrainingData::Impl::shape_of_shares(const Window& window,
                                               const std::vector<std::size_t>& pairs) const {
  std::size_t source = 0, target = 0;
  for (const std::size_t i : pairs) {
    source = std::max(source, window.pairs[i].source.size() + 1);
    target = std::max(target, window.pairs[i].target.size() + 1);
  }
  const auto size = static_cast<std::size_t>(share.size);
  return {static_cast<int>((pairs.size() + size - 1) / size), static_cast<int>(source),
          static_cast<int>(target)};
}

Item TrainingData::Impl::item(const Window& window, const std::vector<std::size_t>& pairs) const {
  std::vector<const Ids*> sources, targets;
  std::vector<std::int64_t> from;
  std::vector<Ids> links;
  const auto step = static_cast<std::size_t>(share.size);
  for (std::size_t i = static_cast<std::size_t>(share.rank); i < pairs.size(); i += step) {
    const EncodedPair& pair = window.pairs[pairs[i]];
    sources.push_back(&pair.source);
    targets.push_back(&pair.target);
    from.push_back(pair.line);
    if (loader.alignments) links.push_back(pair.links);
  }
  if (sources.empty()) return {};
  Item made{.batch = make_batch(sources, targets, loader.target.bos(), loader.target.eos())};
  made.batch.lines = std::move(from);
  if (loader.alignments) made.batch.extra = std::make_shared<BatchLinks>(std::move(links));
  made.batch.slice = {share.rank, share.size, static_cast<int>(pairs.size())};
  if (share.size > 1) made.batch.of_shares = shape_of_shares(window, pairs);
  return made;
}

// Shares go through the queue like batches, in order, so that all processes exchange the same piece
// at the same batch.
PairStream::Exchange TrainingData::Impl::exchange() {
  return {.send = [this](Ids mine) { push({.piece = std::move(mine)}); },
          .receive = [this] { return gathered->pop(); },
          .encoding =
              [this] {
                if (queue->closed()) throw Stopped();
                encoded.fetch_add(1, std::memory_order_relaxed);
              }};
}

/// Produces batches from a position on until the consumer stops. A batch is held back until the
/// next one is known, because only then it is known whether it is the last of its epoch. The text
/// of the next window is requested before the batches of this one are returned, so that it has
/// arrived when they are used up.
void TrainingData::Impl::produce(LoaderState at) {
  const std::uint64_t seed = loader.spec.seed;
  const auto total = static_cast<std::int64_t>(lines.size());
  PairStream pairs(loader, lines, share, at.epoch, at.window, exchange());
  std::int64_t largest_window = 0;
  for (;; at = LoaderState{.epoch = at.epoch + 1}) {
    std::optional<Item> held;
    while (at.window < total) {
      const Window window = loader.window([&] { return pairs.next(); }, total - at.window);
      largest_window = std::max(largest_window, window.read);
      pairs.read_ahead(largest_window + largest_window / 8);
      std::vector<std::vector<std::size_t>> batches = loader.cut(window);
      Rng window_rng(seed, kWindowStream + static_cast<std::uint64_t>(at.epoch),
                     static_cast<std::uint64_t>(at.window) << 24);
      shuffle(batches, window_rng);

      const auto count = static_cast<std::int64_t>(batches.size());
      if (at.batch > 0 && at.batch >= count) {
        fail(ExitStatus::data,
             "position in the corpus: batch {} of a window of {}: the corpus or its settings have "
             "changed",
             at.batch, count);
      }
      const std::int64_t end = at.window + window.read;
      LoaderState after_window{.epoch = at.epoch, .window = end, .drops = at.drops};
      after_window.drops += window.drops;
      for (std::int64_t b = at.batch; b < count; ++b) {
        if (held) push(*std::move(held));
        held = item(window, batches[static_cast<std::size_t>(b)]);
        held->after = after_window;
        if (b + 1 < count)
          held->after = {.epoch = at.epoch, .window = at.window, .batch = b + 1, .drops = at.drops};
        const double part = static_cast<double>(b + 1) / static_cast<double>(count);
        const double done =
            static_cast<double>(at.window) + static_cast<double>(window.read) * part;
        held->after.epochs = static_cast<double>(at.epoch) + done / static_cast<double>(total);
        held->drops = after_window.drops;
      }
      at = after_window;
    }
    if (!held) {
      fail(ExitStatus::data, "{} and {}: none of the {} pairs is usable: {}",
           loader.corpus.file(Side::source).path(), loader.corpus.file(Side::target).path(), total,
           at.drops.text(loader.spec.max_length, loader.spec.max_length_unit == LengthUnit::words));
    }
    held->after = {.epoch = at.epoch + 1, .epochs = static_cast<double>(at.epoch + 1)};
    held->drops = at.drops;
    push(*std::move(held));
  }
}

TrainingData::TrainingData(const ParallelCorpus& corpus, const Vocabulary& source,
                           const Vocabulary& target, const DataSpec& spec,
                           std::span<const std::int64_t> excluded, const RankSlice& share,
                           Gather gather, const NoiseSpec& noise, int context_sentences,
                           const Alignments* alignments)
    : impl_(std::make_unique<Impl>(
          PairLoader{corpus, source, target, spec, TextNoise(noise, spec.seed)}, share,
          std::move(gather))) {
  impl_->loader.context_sentences = context_sentences;
  impl_->loader.alignments = alignments;
  if (noise.bpe_dropout > 0) {
    PairLoader& loader = impl_->loader;
    loader.source_dropout = std::make_shared<BpeDropout>(source, noise.bpe_dropout);
    loader.target_dropout = &source == &target
                                ? loader.source_dropout
                                : std::make_shared<BpeDropout>(target, noise.bpe_dropout);
  }
  NMT_CHECK(share.rank >= 0 && share.rank < share.size,
            "training data: rank {} is not below the number of processes {}", share.rank,
            share.size);
  NMT_CHECK(share.size == 1 || impl_->gather, "training data: {} processes need a gather function",
            share.size);
  impl_->loader.check();
  if (corpus.pairs() > std::numeric_limits<std::uint32_t>::max()) {
    fail(ExitStatus::data, "{}: {} lines exceed the maximum of {}",
         corpus.file(Side::source).path(), corpus.pairs(),
         std::numeric_limits<std::uint32_t>::max());
  }
  NMT_CHECK(std::is_sorted(excluded.begin(), excluded.end()),
            "training data: the excluded lines are not sorted");
  impl_->lines.reserve(static_cast<std::size_t>(corpus.pairs()));
  auto next_excluded = excluded.begin();
  for (std::int64_t i = 0; i < corpus.pairs(); ++i) {
    while (next_excluded != excluded.end() && *next_excluded < i) ++next_excluded;
    if (next_excluded == excluded.end() || *next_excluded != i)
      impl_->lines.push_back(static_cast<std::uint32_t>(i));
  }
  if (impl_->lines.empty()) {
    fail(ExitStatus::data, "{}: none of the {} lines is left for training",
         corpus.file(Side::source).path(), corpus.pairs());
  }
}

TrainingData::~TrainingData() = default;

Batch TrainingData::next() {
  if (!impl_->thread.joinable()) impl_->start();
  Item item = impl_->queue->pop();
  for (; item.piece; item = impl_->queue->pop()) impl_->gathered->push(impl_->gather(*item.piece));
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
    fail(ExitStatus::data, "position in the corpus: pair {} of {}: the corpus has changed",
         state.window, pairs());
  }
  impl_->state = state;
  impl_->drops = state.drops;
  impl_->encoded.store(0, std::memory_order_relaxed);  // a batch may only have been tried
}

const DropCounts& TrainingData::drops() const {
  return impl_->drops;
}

std::int64_t TrainingData::pairs() const {
  return static_cast<std::int64_t>(impl_->lines.size());
}

std::int64_t TrainingData::encoded() const {
  return impl_->encoded.load(std::memory_order_relaxed);
}

std::vector<Batch> TrainingData::largest_batches() const {
  std::vector<Batch> batches = impl_->loader.largest(impl_->lines);
  if (impl_->share.size > 1)
    for (Batch& batch : batches) batch = take(batch, impl_->share);
  return batches;
}

}  // namespace nmt
