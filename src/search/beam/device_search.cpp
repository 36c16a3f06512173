#include "search/beam/device_search.h"

#include "core/error.h"
#include "kernels/decoding/beam.h"
#include "search/beam/search_tree.h"
#include "search/beam/top_k.h"
#include "tensor/copy.h"
#include "tensor/repeat.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

namespace nmt {
namespace {

using kernels::BeamNode;
using kernels::BeamSentence;

// Sizes in words of the report.
constexpr std::int64_t sentence_words = sizeof(BeamSentence) / sizeof(std::int32_t),
                       node_words = sizeof(BeamNode) / sizeof(std::int32_t);

// Keys for CudaDevice::repeat(); not addresses of models.
constexpr std::int64_t choice_of_a_step = 1, whole_period = 2;

// Thrown where the steps of the last period show that the next steps are not a whole period.
struct OtherSteps {};

/// Assignment of rows to sentences.
struct Layout {
  std::vector<std::int32_t> active, first,
      slots;  // sentences with rows; per sentence of the batch
  std::int64_t rows = 0;
  Tensor words;  // i32: active, first, slots, and the sentence of each row
  Tensor sums;   // [rows]

  const std::int32_t* at(std::size_t word) const { return words.data<std::int32_t>() + word; }
  Tensor sentences() const { return words.slice(words.elements() - rows, rows); }
  kernels::BeamRows on_device() const {
    return {at(active.size()), at(active.size() + first.size()), sums.f32()};
  }
};

}  // namespace

struct DeviceSearch::Impl {
  Impl(const Context& context, Decoding& decoding, int vocabulary,
       std::span<const std::vector<std::int32_t>> sources, const SearchOptions& options)
      : context_(context),
        decoding_(decoding),
        sources_(sources),
        options_(options),
        batch_(static_cast<std::int64_t>(sources.size())),
        k_(std::min(options.beam_size, vocabulary)),
        top_k_(options.cpu, vocabulary, k_, skipped_tokens(options), options.eos) {
    const std::int64_t max_rows = batch_ * options.beam_size;
    parents_ = context.empty({max_rows}, Dtype::i32);
    tokens_ = context.empty({max_rows}, Dtype::i32);
    report_ = context.empty({batch_ * sentence_words + steps_between_syncs * max_rows * node_words},
                            Dtype::i32);
    for (std::size_t i = 0; i < sources.size(); ++i)
      sentences_.push_back(
          {longest_output(options, sources[i].size() - context_of(options, i)), 0, 1});
    std::vector<std::int32_t> words(static_cast<std::size_t>(batch_ * sentence_words));
    std::memcpy(words.data(), sentences_.data(), words.size() * sizeof(words[0]));
    upload(context, std::span<const std::int32_t>(words),
           report_.slice(0, batch_ * sentence_words));

    std::vector<double> divisors;
    for (int tokens = 0; tokens < longest() + 2; ++tokens)
      divisors.push_back(options.ranking.length_divisor(tokens));
    divisors_ = upload(context, divisors, {static_cast<std::int64_t>(divisors.size())});

    // One row per sentence for the empty hypothesis; the first step uses all its rows.
    rows_ = lay_out([](const BeamSentence&) { return 1; });
    next_rows_ = lay_out([&](const BeamSentence&) { return options.beam_size; });
    clear<float>(context, rows_.sums);
    std::vector<std::int32_t> first(sources.size());
    std::iota(first.begin(), first.end(), 0);
    upload(context, std::span<const std::int32_t>(first), parents_.slice(0, batch_));
    std::fill(first.begin(), first.end(), options.bos);
    upload(context, std::span<const std::int32_t>(first), tokens_.slice(0, batch_));
  }

  std::vector<SentenceResult> run() {
    while (!rows_.active.empty()) {
      const int steps = std::min(steps_between_syncs, longest() + 1 - steps_);
      if (steps == steps_between_syncs && repeat_period()) continue;
      if (fetched_ < steps_) {
        fetch_steps(steps_);
        leave_out_the_dead();
        continue;
      }
      for (int i = 0; i < steps; ++i) step();
    }
    return tree_.collect(sources_, options_);
  }

  // Maximum over the sentences still being searched.
  int longest() const {
    int length = 0;
    for (const BeamSentence& sentence : sentences_)
      if (sentence.live > 0) length = std::max(length, sentence.longest);
    return length;
  }

  // Allocates rows for the sentences still being searched, slots(sentence) each.
  template <class Slots>
  Layout lay_out(Slots&& slots) const {
    Layout layout;
    layout.first.assign(sentences_.size(), 0);
    layout.slots.assign(sentences_.size(), 0);
    std::vector<std::int32_t> of_rows;
    for (std::size_t i = 0; i < sentences_.size(); ++i) {
      if (sentences_[i].live == 0) continue;
      layout.active.push_back(static_cast<std::int32_t>(i));
      layout.first[i] = static_cast<std::int32_t>(of_rows.size());
      layout.slots[i] = slots(sentences_[i]);
      of_rows.insert(of_rows.end(), static_cast<std::size_t>(layout.slots[i]),
                     static_cast<std::int32_t>(i));
    }
    layout.rows = static_cast<std::int64_t>(of_rows.size());
    std::vector<std::int32_t> words;
    for (const auto* part : {&layout.active, &layout.first, &layout.slots, &of_rows})
      words.insert(words.end(), part->begin(), part->end());
    layout.words = upload(context_, words, {static_cast<std::int64_t>(words.size())});
    layout.sums = context_.empty({layout.rows});
    return layout;
  }

  // Enqueues the steps of a whole period as one piece of work that recurs, and fetches the steps
  // before them. A graph of so many calls takes the host as long to compare as a device needs for
  // some of its steps. So the host does that while the device still runs the last period, and reads
  // its results before the launch. If the search then does not go on with a whole period in the
  // current layout, nothing is enqueued. False: not possible, and nothing has been done.
  bool repeat_period() {
    // After a step in this layout all memory is there.
    if (next_rows_ || steps_ == laid_out_) return false;
    std::vector<std::int64_t> key{whole_period, rows_.rows, k_};
    if (!decoding_.mark(key)) return false;
    const int first = steps_;
    try {
      repeat(context_, key, [&] {  // may be called again
        decoding_.return_to_mark();
        steps_ = first;
        between_graphs(context_, {whole_period}, [this, first] {
          fetch_steps(first);
          if (!keeps_rows() || longest() + 1 - first < steps_between_syncs) throw OtherSteps{};
        });
        for (int i = 0; i < steps_between_syncs; ++i) step();
      });
    } catch (const OtherSteps&) {
      decoding_.return_to_mark();
      steps_ = first;
      leave_out_the_dead();
    }
    return true;
  }

  // Enqueues a step. While the layout is unchanged, every step runs the same kernels on the same
  // memory.
  void step() {
    const DecodingStep next = decoding_.advance_on_device(
        {parents_.slice(0, rows_.rows), tokens_.slice(0, rows_.rows), rows_.sentences()});
    NMT_CHECK(next.rows == rows_.rows, "the scorer returned {} rows for {} hypotheses", next.rows,
              rows_.rows);
    if (next_rows_)
      choose(next);
    else
      repeat(context_, {choice_of_a_step, rows_.rows, k_}, [&] { choose(next); });
    ++steps_;
    if (!next_rows_) return;
    rows_ = *std::exchange(next_rows_, std::nullopt);
    laid_out_ = steps_;
  }

  // May be repeated: it does not change host state.
  void choose(const DecodingStep& next) {
    const TopK::OnDevice scores = top_k_.select_on_device(decoding_, next);
    const Layout& to = next_rows_ ? *next_rows_ : rows_;
    kernels::BeamStep beam;
    beam.beam = options_.beam_size;
    beam.eos = options_.eos;
    beam.n_best = options_.n_best;
    beam.sentences = static_cast<std::int64_t>(to.active.size());
    beam.active = to.at(0);
    beam.from = rows_.on_device();
    beam.to = to.on_device();
    beam.rows = to.rows;
    beam.k = k_;
    beam.tokens = scores.tokens;
    beam.logits = scores.logits;
    beam.eos_logits = scores.extras;
    beam.eos_stride = scores.extra_stride;
    beam.log_normalizers = scores.log_normalizers;
    beam.joined = scores.joined;
    beam.length_divisors = divisors_.data<double>();
    std::int32_t* const report = report_.data<std::int32_t>();
    beam.state = reinterpret_cast<BeamSentence*>(report);
    beam.history = reinterpret_cast<BeamNode*>(report + batch_ * sentence_words);
    beam.period = steps_between_syncs;
    beam.parents = parents_.data<std::int32_t>();
    beam.next_tokens = tokens_.data<std::int32_t>();
    dispatch(context_, [&](const auto& backend) { kernels::beam_step(backend, beam); });
  }

  // Copies the steps up to `end` to the host, the last that the device has made: at most a period,
  // all with the current layout.
  void fetch_steps(int end) {
    if (fetched_ == end) return;
    const std::int64_t state = batch_ * sentence_words, steps = end - fetched_;
    const auto words =
        download<std::int32_t>(context_, report_.slice(0, state + steps * rows_.rows * node_words));
    std::memcpy(static_cast<void*>(sentences_.data()), words.data(),
                static_cast<std::size_t>(state) * sizeof(words[0]));
    for (const std::int32_t i : rows_.active) {
      const BeamSentence& sentence = sentences_[static_cast<std::size_t>(i)];
      if (sentence.fault == kernels::score_not_finite)
        fail_score(sentence.fault_sum, sentence.fault_at);
      if (sentence.fault == kernels::no_finite_extension) fail_dead_end(sentence.fault_at);
    }
    const std::int32_t* from = words.data() + state;
    for (int t = std::exchange(fetched_, end); t < end; ++t) {
      const auto first_node = static_cast<std::int32_t>(tree_.nodes.size());
      for (const std::int32_t i : rows_.active)
        for (std::int32_t slot = 0; slot < rows_.slots[static_cast<std::size_t>(i)];
             ++slot, from += node_words) {
          BeamNode node;
          std::memcpy(static_cast<void*>(&node), from, sizeof(node));
          grow(i, t, node);
        }
      nodes_before_ = first_node;
    }
  }

  // Appends the next row of a step. Rows without a hypothesis get a node too, so that nodes and
  // rows correspond.
  void grow(std::int32_t sentence, int t, const BeamNode& row) {
    const std::int32_t parent = t == 0 || row.token < 0 ? -1 : nodes_before_ + row.parent;
    const auto node = static_cast<std::int32_t>(tree_.nodes.size());
    const float sum = tree_.sum_of(parent) + row.log_prob;
    tree_.nodes.push_back({parent, row.token, row.log_prob, sum, -1, 1});
    if (row.token == options_.eos)
      tree_.finished.push_back({sentence, node, t + 1, options_.ranking.score(sum, t + 1, 0.0)});
  }

  // Rows of the hypotheses that are still to be found.
  std::int64_t wanted_rows() const {
    std::int64_t wanted = 0;
    for (const BeamSentence& sentence : sentences_)
      if (sentence.live > 0) wanted += options_.beam_size - sentence.finished;
    return wanted;
  }

  bool keeps_rows() const { return 2 * wanted_rows() > rows_.rows; }

  void leave_out_the_dead() {
    if (wanted_rows() == 0) rows_ = {};
    if (rows_.active.empty() || keeps_rows()) return;
    next_rows_ = lay_out(
        [&](const BeamSentence& sentence) { return options_.beam_size - sentence.finished; });
  }

  const Context& context_;
  Decoding& decoding_;
  const std::span<const std::vector<std::int32_t>> sources_;
  const SearchOptions& options_;
  const std::int64_t batch_;
  const int k_;  // extensions considered per row
  TopK top_k_;
  std::vector<BeamSentence> sentences_;  // as of the last synchronization
  Layout rows_;                          // layout of the hypotheses that the next step extends
  std::optional<Layout> next_rows_;      // layout of the next step, if it differs
  int steps_ = 0;                        // that have been enqueued
  int fetched_ = 0;                      // steps whose results the host has
  int laid_out_ = 0;                     // the first step that extends hypotheses in rows_
  Tensor parents_, tokens_;              // i32 [rows]
  Tensor divisors_;                      // f64
  Tensor report_;  // i32: BeamSentence [B], BeamNode [steps_between_syncs,rows]
  SearchTree tree_;
  std::int32_t nodes_before_ = 0;  // node of the first row of the previous step
};

DeviceSearch::DeviceSearch(const Context& device, Decoding& decoding, int vocabulary,
                           std::span<const std::vector<std::int32_t>> sources,
                           const SearchOptions& options)
    : impl_(std::make_unique<Impl>(device, decoding, vocabulary, sources, options)) {}

DeviceSearch::~DeviceSearch() = default;

std::vector<SentenceResult> DeviceSearch::run() {
  return impl_->run();
}

void DeviceSearch::step() {
  impl_->step();
}

}  // namespace nmt
