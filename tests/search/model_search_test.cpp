#include "model/decoding/model_scorer.h"
#include "search/beam/beam_search.h"
#include "search/beam/force_decode.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int source_size = 40, target_size = 37;

ModelSpec small(const std::string& unit, AttentionQuery query) {
  ModelSpec spec;
  spec.enc_cell = spec.dec_cell = unit;
  spec.attention_query = query;
  spec.dim_emb = 12;
  spec.dim_rnn = 20;
  spec.enc_depth = spec.dec_depth = 2;
  return spec;
}

std::vector<Ids> random_sources(int n) {
  Rng rng(17);
  std::vector<Ids> sources(n);
  for (Ids& source : sources) {
    source.resize(1 + rng.below(9));
    for (std::int32_t& id : source) id = static_cast<std::int32_t>(3 + rng.below(source_size - 3));
  }
  return sources;
}

bool same(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Hypothesis& x, const Hypothesis& y) {
                      return x.ids == y.ids && x.log_probs == y.log_probs && x.score == y.score &&
                             x.attention == y.attention;
                    });
}

// With a real model whose scores do not depend on the batch, results are bit-identical for every
// batch.
TEST(ModelSearch, TheSameForEveryBatchOrderAndNumberOfThreads) {
  const std::vector<Ids> sources = random_sources(64);
  const std::pair<const char*, AttentionQuery> kinds[] = {{"lrn", AttentionQuery::recurrent},
                                                          {"olrn", AttentionQuery::first_layer},
                                                          {"gru", AttentionQuery::recurrent}};
  for (const auto& [unit, query] : kinds) {
    std::vector<SentenceResult> reference;
    for (const int threads : {1, 2}) {
      test::Engine engine(threads);
      Model model(small(unit, query), source_size, target_size, engine.context, 5);
      model.freeze();
      ModelScorer scorer(model, 1, 2);
      SearchOptions options;
      options.cpu = engine.context.cpu;
      options.n_best = options.want_attention = true;
      options.ranking = {0, 0.6, 0.1};
      options.max_length_factor = 1;
      options.max_length_offset = 2;
      if (reference.empty()) reference = beam_search(scorer, sources, options);
      std::vector<int> order(sources.size());
      std::iota(order.begin(), order.end(), 0);
      Rng rng(3);
      for (const std::size_t size : {1u, 2u, 7u, 64u}) {
        for (std::size_t i = order.size() - 1; i > 0; --i)
          std::swap(order[i], order[rng.below(i + 1)]);
        for (std::size_t begin = 0; begin < order.size(); begin += size) {
          std::vector<Ids> batch;
          for (std::size_t i = begin; i < std::min(begin + size, order.size()); ++i)
            batch.push_back(sources[order[i]]);
          const auto results = beam_search(scorer, batch, options);
          for (std::size_t i = 0; i < batch.size(); ++i)
            EXPECT_TRUE(same(results[i].hypotheses, reference[order[begin + i]].hypotheses))
                << unit << ' ' << name_of(query) << " threads " << threads << " batch " << size
                << " sentence " << order[begin + i];
        }
      }
      std::vector<Ids> repeated, targets;
      for (std::size_t i = 0; i < sources.size(); ++i)
        for (const Hypothesis& hypothesis : reference[i].hypotheses) {
          repeated.push_back(sources[i]);
          targets.push_back(hypothesis.ids);
        }
      const auto forced = force_decode(scorer, repeated, targets, true);
      std::size_t at = 0;
      for (const SentenceResult& result : reference)
        for (const Hypothesis& hypothesis : result.hypotheses)
          EXPECT_EQ(forced[at++].log_probs, hypothesis.log_probs) << unit;
    }
  }
}

TEST(ModelSearch, ASteadySearchTakesNoTensorMemory) {
  test::Engine engine(2);
  Model model(small("lrn", AttentionQuery::recurrent), source_size, target_size, engine.context, 5);
  model.freeze();
  ModelScorer scorer(model, 1, 2);
  SearchOptions options;
  options.cpu = engine.context.cpu;
  const std::vector<Ids> sources = random_sources(16);
  beam_search(scorer, sources, options);
  const std::int64_t before = engine.arena.statistics().system_allocations;
  for (int i = 0; i < 3; ++i) beam_search(scorer, sources, options);
  EXPECT_EQ(engine.arena.statistics().system_allocations, before);
}

}  // namespace
}  // namespace nmt
