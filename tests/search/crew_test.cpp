// Several batches at a time: the results of one at a time, in order.

#include "search/crew.h"

#include "core/error.h"
#include "core/log.h"
#include "model/decoding/model_scorer.h"
#include "search/batch_translator.h"
#include "search/pair_scorer.h"
#include "small_vocabulary.h"
#include "table_scorer.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

namespace nmt {
namespace {

std::vector<std::string> some_lines(int n) {
  const std::vector<std::string> words{"the", "quick", "brown", "fox", "jumps", "a", "lazy", "dog"};
  std::vector<std::string> lines;
  Rng rng(7);
  for (int i = 0; i < n; ++i) {
    std::string line;
    for (std::uint64_t k = rng.below(9); k > 0; --k)
      line += (line.empty() ? "" : " ") + words[rng.below(words.size())];
    lines.push_back(line);
  }
  return lines;
}

/// A model of the test vocabulary, frozen with weights of this type.
struct FrozenModel {
  explicit FrozenModel(Dtype weights, const std::string& unit = "lrn") {
    ModelSpec spec;
    spec.enc_cell = spec.dec_cell = unit;
    spec.dim_emb = 12;
    spec.dim_rnn = 20;
    spec.enc_depth = spec.dec_depth = 2;
    engine.context.weights = weights;
    model = std::make_unique<Model>(spec, small_vocabulary().size(), small_vocabulary().size(),
                                    engine.context, 5);
    model->freeze();
    scorer.emplace(*model, small_vocabulary().bos(), small_vocabulary().eos());
  }
  test::Engine engine{3};
  std::unique_ptr<Model> model;
  std::optional<ModelScorer> scorer;
};

/// Workers of this many threads each over one model.
struct SharedCrew {
  SharedCrew(FrozenModel& frozen, int workers, int threads) : pool(workers) {
    for (int i = 0; i < workers; ++i) {
      test::Engine& engine = engines.emplace_back(threads);
      engine.context.weights = frozen.engine.context.weights;
      ModelScorer& scorer = scorers.emplace_back(
          *frozen.model, engine.context, small_vocabulary().bos(), small_vocabulary().eos());
      crew.workers.push_back({&scorer, engine.context.cpu});
    }
    crew.pool = &pool;
  }
  ThreadPool pool;
  std::deque<test::Engine> engines;
  std::deque<ModelScorer> scorers;
  Crew crew;
};

BatchTranslatorOptions rich_options(const FrozenModel& frozen) {
  SearchSpec spec;
  spec.mini_batch = 5;
  spec.n_best = true;
  spec.alignment = AlignmentKind::word;
  spec.coverage_penalty = 0.1;
  spec.max_length_factor = 1;
  return translator_options(spec, frozen.engine.context.cpu);
}

std::vector<std::string> translate(FrozenModel& frozen, const BatchTranslatorOptions& options,
                                   const std::vector<std::string>& lines) {
  BatchTranslator translator(*frozen.scorer, small_vocabulary(), small_vocabulary(), options);
  std::vector<std::string> result;
  std::int64_t id = 0;
  for (const LineTranslation& each : translator.translate(lines))
    result.push_back(format_translation(each, id++, translator.options()));
  return result;
}

TEST(Crew, TranslationsAndScoresAreThoseOfOneWorker) {
  const std::vector<std::string> lines = some_lines(60), others = [] {
    std::vector<std::string> copy = some_lines(60);
    std::reverse(copy.begin(), copy.end());
    return copy;
  }();
  for (const auto& [weights, unit] : {std::pair(Dtype::f32, "gru"), std::pair(Dtype::bf16, "lrn"),
                                      std::pair(Dtype::i8, "olrn")}) {
    FrozenModel frozen(weights, unit);
    BatchTranslatorOptions options = rich_options(frozen);
    const std::vector<std::string> expected = translate(frozen, options, lines);
    PairScorerOptions scoring{
        frozen.engine.context.cpu, {0, 0.6, 0.1}, options.batching, AlignmentKind::word};
    PairScorer alone(*frozen.scorer, small_vocabulary(), small_vocabulary(), scoring);
    const std::vector<PairScore> expected_scores = alone.score(lines, others);
    for (const auto& [workers, threads] : {std::pair(2, 1), std::pair(3, 2)}) {
      SharedCrew shared(frozen, workers, threads);
      options.crew = scoring.crew = shared.crew;
      EXPECT_EQ(translate(frozen, options, lines), expected) << unit << ' ' << workers;
      PairScorer together(*frozen.scorer, small_vocabulary(), small_vocabulary(), scoring);
      const std::vector<PairScore> scores = together.score(lines, others);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        EXPECT_EQ(scores[i].word_scores, expected_scores[i].word_scores) << unit << ' ' << i;
        EXPECT_EQ(scores[i].score, expected_scores[i].score) << unit << ' ' << i;
        EXPECT_EQ(scores[i].alignment, expected_scores[i].alignment) << unit << ' ' << i;
      }
      EXPECT_EQ(together.totals().log_prob, alone.totals().log_prob) << unit;
      EXPECT_EQ(together.totals().tokens, alone.totals().tokens) << unit;
    }
  }
}

TEST(Crew, WorkersShareTheWeights) {
  FrozenModel frozen(Dtype::f32);
  const std::size_t weights = frozen.engine.arena.statistics().in_use;
  SharedCrew shared(frozen, 2, 1);
  for (const test::Engine& engine : shared.engines)
    EXPECT_EQ(engine.arena.statistics().reserved, 0u);
  EXPECT_EQ(frozen.engine.arena.statistics().in_use, weights);
}

TEST(Crew, ASingleBatchHasAllThreads) {
  FrozenModel frozen(Dtype::f32);
  SharedCrew shared(frozen, 2, 1);
  BatchTranslatorOptions options = rich_options(frozen);
  options.crew = shared.crew;
  translate(frozen, options, {"the fox"});
  for (const test::Engine& engine : shared.engines)
    EXPECT_EQ(engine.arena.statistics().system_allocations, 0);
  translate(frozen, options, {"the fox", "a dog"});
  EXPECT_GT(shared.engines[0].arena.statistics().system_allocations +
                shared.engines[1].arena.statistics().system_allocations,
            0);
}

// The threads of workers without a batch work on the batches of the others.
TEST(Crew, FewBatchesHaveWorkersOfMoreThreads) {
  FrozenModel frozen(Dtype::f32);
  SharedCrew shared(frozen, 5, 1), wide(frozen, 2, 2);
  BatchTranslatorOptions options = rich_options(frozen);
  const std::vector<std::string> lines{"the fox", "a dog jumps"},
      more = some_lines(60), expected = translate(frozen, options, lines),
      expected_more = translate(frozen, options, more);
  std::vector<std::size_t> asked;
  options.crew = shared.crew;
  options.crew.widened = [&](std::size_t batches) {
    asked.push_back(batches);
    return std::span<const Worker>(wide.crew.workers);
  };
  EXPECT_EQ(translate(frozen, options, lines), expected);
  for (const test::Engine& engine : wide.engines)
    EXPECT_GT(engine.arena.statistics().system_allocations, 0);
  for (const test::Engine& engine : shared.engines)
    EXPECT_EQ(engine.arena.statistics().system_allocations, 0);
  translate(frozen, options, {"the fox"});
  EXPECT_EQ(translate(frozen, options, more), expected_more);
  EXPECT_EQ(asked, std::vector<std::size_t>{2}) << "one batch, or many";
  options.crew.widened = [](std::size_t) { return std::span<const Worker>(); };
  EXPECT_EQ(translate(frozen, options, lines), expected) << "where there are no more threads";
}

TEST(Crew, ListenersHearOfEverySentenceAndCanEndTheWork) {
  FrozenModel frozen(Dtype::f32);
  SharedCrew shared(frozen, 2, 1);
  BatchTranslatorOptions options = rich_options(frozen);
  options.crew = shared.crew;
  std::int64_t told = 0;  // calls never overlap
  options.on_batch = [&](std::int64_t sentences) { told += sentences; };
  translate(frozen, options, some_lines(60));
  EXPECT_EQ(told, 60);
  struct Stop {};
  int calls = 0;
  options.on_batch = [&](std::int64_t) {
    if (++calls == 3) throw Stop{};
  };
  EXPECT_THROW(translate(frozen, options, some_lines(60)), Stop);
}

/// Throws std::bad_alloc always.
struct NoMemory : StepScorer {
  int vocabulary() const override { return small_vocabulary().size(); }
  std::unique_ptr<Decoding> begin(std::span<const Ids>, bool) override {
    ++refused;
    throw std::bad_alloc();
  }
  std::atomic<int> refused{0};
};

TEST(Crew, BatchesForWhichAWorkerHasNoMemoryAreDoneAlone) {
  log::set_level(log::Level::off);
  FrozenModel frozen(Dtype::f32);
  BatchTranslatorOptions options = rich_options(frozen);
  const std::vector<std::string> lines = some_lines(40),
                                 expected = translate(frozen, options, lines);
  SharedCrew shared(frozen, 2, 1);
  NoMemory none;
  int trimmed = 0;
  options.crew = shared.crew;
  options.crew.workers[0].scorer = options.crew.workers[1].scorer = &none;
  options.crew.trim = [&] { ++trimmed; };
  EXPECT_EQ(translate(frozen, options, lines), expected);
  EXPECT_GT(none.refused, 0);
  EXPECT_EQ(trimmed, 1);
  log::set_level(log::Level::info);
}

// The batches go to the first free worker, as in Crew::run(); the cost of a batch is its number of
// padded tokens.
double imbalance(const std::vector<std::vector<std::size_t>>& batches,
                 const std::vector<std::size_t>& lengths, std::size_t workers) {
  std::vector<double> busy(workers);
  for (const auto& batch : batches) {
    std::size_t longest = 0;
    for (const std::size_t i : batch) longest = std::max(longest, lengths[i]);
    *std::min_element(busy.begin(), busy.end()) += static_cast<double>(longest * batch.size());
  }
  return *std::max_element(busy.begin(), busy.end()) * static_cast<double>(workers) /
         std::accumulate(busy.begin(), busy.end(), 0.0);
}

TEST(Crew, WorkersEndTogether) {
  Rng rng(11);
  std::vector<std::size_t> lengths(1000), sentences(1000);
  for (std::size_t& length : lengths) length = 5 + rng.below(30);
  std::iota(sentences.begin(), sentences.end(), std::size_t{0});
  const Batching batching;
  for (const std::size_t count : {std::size_t{100}, std::size_t{1000}})
    for (const int workers : {2, 3, 4}) {
      const std::vector<std::size_t> some(sentences.begin(),
                                          sentences.begin() + static_cast<long>(count));
      const auto batches = batching.cut(some, lengths, workers);
      std::vector<std::size_t> all;
      for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, some);
      EXPECT_LT(imbalance(batches, lengths, static_cast<std::size_t>(workers)), 1.1) << workers;
      if (count == 100) {
        EXPECT_GT(imbalance(batching.cut(some, lengths), lengths, 2), 1.3) << "without";
      }
    }
  // A few sentences are shared out too.
  for (const auto& [count, expected] :
       {std::pair<std::size_t, std::vector<std::size_t>>{1, {1}}, {2, {1, 1}}, {5, {3, 2}}}) {
    std::vector<std::size_t> sizes;
    for (const auto& batch : batching.cut(
             {sentences.begin(), sentences.begin() + static_cast<long>(count)}, lengths, 2))
      sizes.push_back(batch.size());
    EXPECT_EQ(sizes, expected);
  }
}

}  // namespace
}  // namespace nmt
