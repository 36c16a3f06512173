#include "search/beam/beam_search.h"

#include "config/fields.h"
#include "core/error.h"
#include "search/beam/device_search.h"
#include "search/beam/search_tree.h"
#include "search/beam/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace nmt {
namespace {

/// A candidate extension of a live row.
struct Candidate {
  float sum;
  float log_prob;
  std::int32_t row;
  std::int32_t rank;  // among the extensions of the row: larger logit first, then lower id
  std::int32_t token;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return a.row != b.row ? a.row < b.row : a.rank < b.rank;
}

struct Sentence {
  int source_steps;  // S, including </s>
  int context;       // leading source steps that are context
  int longest;       // maximum output length in tokens, without </s>
  int rows;          // live hypotheses
  int finished;      // finished hypotheses
  float best;        // highest score of a finished hypothesis
};

class BeamSearch {
 public:
  BeamSearch(std::unique_ptr<Decoding> decoding, int vocabulary,
             std::span<const std::vector<std::int32_t>> sources, const SearchOptions& options,
             bool keep_attention)
      : options_(options),
        sources_(sources),
        k_(std::min(options.beam_size, vocabulary)),
        keep_attention_(keep_attention),
        top_k_(options.cpu, vocabulary, k_, skipped_tokens(options), options.eos),
        decoding_(std::move(decoding)) {
    const std::size_t rows = sources.size() * static_cast<std::size_t>(options.beam_size);
    for (std::vector<std::int32_t>* v :
         {&parents_, &tokens_, &next_parents_, &next_tokens_, &nodes_of_rows_, &next_nodes_})
      v->reserve(rows);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::size_t context = context_of(options, i);
      sentences_.push_back({static_cast<int>(sources[i].size()) + 1, static_cast<int>(context),
                            longest_output(options, sources[i].size() - context), 1, 0, 0.0f});
      parents_.push_back(static_cast<std::int32_t>(i));
      tokens_.push_back(options.bos);
      nodes_of_rows_.push_back(-1);
      active_.push_back(static_cast<int>(i));
    }
    if (options.shortlist) restrict_to_shortlist(sources);
  }

  std::vector<SentenceResult> run() {
    for (int step = 0; !active_.empty(); ++step) {
      const DecodingStep next = decoding_->advance(parents_, tokens_);
      NMT_CHECK(next.rows == static_cast<int>(parents_.size()),
                "the scorer returned {} rows for {} hypotheses", next.rows, parents_.size());
      NMT_CHECK(!keep_attention_ || next.attention,
                "the scorer returned no attention although it was requested");
      sentence_of_row_.clear();
      if (options_.shortlist)
        for (const int sentence : active_)
          sentence_of_row_.insert(sentence_of_row_.end(), sentences_[sentence].rows, sentence);
      top_k_.select(*decoding_, next, sentence_of_row_);
      next_parents_.clear();
      next_tokens_.clear();
      next_nodes_.clear();
      std::size_t still = 0;
      int row = 0;
      for (const int sentence : active_) {
        const int rows = sentences_[sentence].rows;
        extend(sentence, row, step, next);
        row += rows;
        if (sentences_[sentence].rows > 0) active_[still++] = sentence;
      }
      active_.resize(still);
      parents_.swap(next_parents_);
      tokens_.swap(next_tokens_);
      nodes_of_rows_.swap(next_nodes_);
    }
    return tree_.collect(sources_, options_);
  }

 private:
  void restrict_to_shortlist(std::span<const std::vector<std::int32_t>> sources) {
    Candidates candidates;
    for (const std::vector<std::int32_t>& source : sources) {
      std::vector<std::int32_t>& ids =
          candidates.emplace_back(options_.shortlist->candidates(source));
      if (options_.allow_unk)
        ids.insert(std::lower_bound(ids.begin(), ids.end(), options_.unk), options_.unk);
    }
    decoding_->restrict_to(candidates);
    top_k_.restrict_to(std::move(candidates));
  }

  void add_candidate(int row, int rank, std::int32_t token, float logit, float log_normalizer) {
    const float log_prob = logit - log_normalizer;
    const float sum = tree_.sum_of(nodes_of_rows_[row]) + log_prob;
    if (sum == -std::numeric_limits<float>::infinity())
      return;  // impossible, and so are all lower ranks
    if (!std::isfinite(sum)) fail_score(sum, token);
    candidates_.push_back({sum, log_prob, row, rank, token});
  }

  /// Replaces the live rows [first_row, first_row + rows) of a sentence by their best extensions.
  void extend(int index, int first_row, int step, const DecodingStep& next) {
    Sentence& sentence = sentences_[index];
    const int end_row = first_row + sentence.rows;
    const std::size_t first_next = next_parents_.size();
    collect_candidates(sentence, first_row, step);
    keep_best(index, first_row, step, next);
    if (keep_attention_)
      for (int row = first_row; row < end_row; ++row) tree_.drop(nodes_of_rows_[row]);
    if (sentence.rows + sentence.finished == 0) fail_dead_end(step);
    stop_if_decided(sentence, first_next, step);
  }

  /// candidates_ = the extensions of the sentence's rows; of the last step, </s> alone.
  void collect_candidates(const Sentence& sentence, int first_row, int step) {
    candidates_.clear();
    for (int row = first_row; row < first_row + sentence.rows; ++row) {
      const float log_normalizer = top_k_.log_normalizer(row);
      if (step == sentence.longest) {
        add_candidate(row, 0, options_.eos, top_k_.extra(row), log_normalizer);
        continue;
      }
      const float* values = top_k_.logits(row);
      const std::int32_t* tokens = top_k_.tokens(row);
      for (int rank = 0; rank < k_ && tokens[rank] >= 0; ++rank)
        add_candidate(row, rank, tokens[rank], values[rank], log_normalizer);
    }
  }

  /// Appends the best candidates to the next rows, in descending order, or to the finished
  /// hypotheses.
  void keep_best(int index, int first_row, int step, const DecodingStep& next) {
    Sentence& sentence = sentences_[index];
    const auto width =
        std::min<std::size_t>(options_.beam_size - sentence.finished, candidates_.size());
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(width),
                      candidates_.end(), better);

    row_attention_.assign(sentence.rows, -1);
    sentence.rows = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const Candidate& c = candidates_[i];
      std::int32_t attention = -1;
      if (keep_attention_)
        attention =
            keep_attention(row_attention_[c.row - first_row], next, c.row, sentence.source_steps);
      const std::int32_t node =
          tree_.add(nodes_of_rows_[c.row], c.token, c.log_prob, c.sum, attention);
      if (c.token == options_.eos) {
        finish(index, node, step + 1);
      } else {
        next_parents_.push_back(c.row);
        next_tokens_.push_back(c.token);
        next_nodes_.push_back(node);
        ++sentence.rows;
      }
    }
  }

  /// Drops the sentence's next rows, from `first_next` on, if none of them can become better than
  /// its best finished hypothesis.
  void stop_if_decided(Sentence& sentence, std::size_t first_next, int step) {
    if (sentence.rows == 0 || options_.n_best || sentence.finished == 0) return;
    // Candidates are sorted, so the first live hypothesis of a sentence has its largest sum.
    const float hope = options_.ranking.bound(tree_.sum_of(next_nodes_[first_next]), step + 2,
                                              sentence.longest + 1);
    if (hope > sentence.best) return;
    if (keep_attention_)
      for (std::size_t i = first_next; i < next_nodes_.size(); ++i) tree_.drop(next_nodes_[i]);
    next_parents_.resize(first_next);
    next_tokens_.resize(first_next);
    next_nodes_.resize(first_next);
    sentence.rows = 0;
  }

  /// Copies the attention of a row, once for all its extensions.
  std::int32_t keep_attention(std::int32_t& slot, const DecodingStep& next, int row,
                              int source_steps) {
    if (slot >= 0) {
      tree_.attention.add_user(slot);
      return slot;
    }
    NMT_CHECK(next.source_steps >= source_steps,
              "the scorer returned attention over {} source steps, expected {}", next.source_steps,
              source_steps);
    const float* from = next.attention + std::int64_t{row} * next.source_steps;
    slot = tree_.attention.add({from, static_cast<std::size_t>(source_steps)});
    return slot;
  }

  void finish(int index, std::int32_t node, int tokens) {
    Sentence& sentence = sentences_[index];
    double covered = 0.0;
    if (options_.ranking.coverage_penalty != 0.0) {
      attended_.assign(sentence.source_steps - 1 - sentence.context, 0.0);
      for (std::int32_t at = node; at >= 0; at = tree_.nodes[at].parent) {
        const float* const attention =
            tree_.attention[tree_.nodes[at].attention] + sentence.context;
        for (std::size_t i = 0; i < attended_.size(); ++i) attended_[i] += attention[i];
      }
      covered = coverage(attended_);
    }
    const float score = options_.ranking.score(tree_.nodes[node].sum, tokens, covered);
    if (sentence.finished == 0 || score > sentence.best) sentence.best = score;
    ++sentence.finished;
    tree_.finished.push_back({index, node, tokens, score});
  }

  const SearchOptions& options_;
  const std::span<const std::vector<std::int32_t>> sources_;
  const int k_;  // extensions considered per row
  const bool keep_attention_;
  TopK top_k_;
  std::unique_ptr<Decoding> decoding_;
  std::vector<Sentence> sentences_;
  std::vector<int> active_;  // sentences with live rows, in the order of their rows
  // Per row: the parent row of the previous step, the token, and the node.
  std::vector<std::int32_t> parents_, tokens_, nodes_of_rows_, next_parents_, next_tokens_,
      next_nodes_;
  std::vector<int> sentence_of_row_;  // used with a shortlist
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> row_attention_;
  SearchTree tree_;
  std::vector<double> attended_;
};

}  // namespace

std::vector<SentenceResult> beam_search(StepScorer& scorer,
                                        std::span<const std::vector<std::int32_t>> sources,
                                        const SearchOptions& options) {
  NMT_CHECK(options.beam_size >= 1, "beam-size is {}, expected at least 1", options.beam_size);
  if (sources.empty()) return {};
  const bool keep_attention = options.want_attention || options.ranking.coverage_penalty != 0.0;
  std::unique_ptr<Decoding> decoding = scorer.begin(sources, keep_attention);
  // The only place that decides where to search: on the device of the scores, except when the host
  // needs every step (attention for alignments or the coverage penalty).
  if (const Context* device = decoding->device(); device && !keep_attention && !options.shortlist)
    return DeviceSearch(*device, *decoding, scorer.vocabulary(), sources, options).run();
  return BeamSearch(std::move(decoding), scorer.vocabulary(), sources, options, keep_attention)
      .run();
}

SearchOptions search_options(const SearchSpec& spec, const Cpu& cpu) {
  config::check(spec);
  SearchOptions options;
  options.cpu = cpu;
  options.beam_size = spec.beam_size;
  options.ranking = {spec.normalize, spec.length_penalty, spec.coverage_penalty};
  options.max_length_factor = spec.max_length_factor;
  options.max_length_offset = spec.max_length_offset;
  options.allow_unk = spec.allow_unk;
  options.n_best = spec.n_best;
  options.want_attention = spec.alignment != AlignmentKind::none;
  return options;
}

}  // namespace nmt
