#include "search/beam/beam_search.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "search/beam/force_decode.h"
#include "search/beam/search_tree.h"
#include "table_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class BeamSearchTest : public testing::Test {
 protected:
  ThreadPool pool{2};
  SearchOptions options() {
    SearchOptions o;
    o.cpu.pool = &pool;
    return o;
  }
  static std::vector<Ids> some_sources(int n) {
    std::vector<Ids> sources;
    Rng rng(11);
    for (int i = 0; i < n; ++i) {
      Ids source(1 + rng.below(9));
      for (auto& id : source) id = static_cast<std::int32_t>(3 + rng.below(50));
      sources.push_back(source);
    }
    return sources;
  }
};

/// A scorer over a table of probabilities; prefixes that are not in the table end with probability
/// 1.
TableScorer table(std::map<Ids, std::vector<float>> probabilities, int vocabulary) {
  return TableScorer(vocabulary, [=](const Ids&, const Ids& prefix) {
    std::vector<float> logits(vocabulary, -infinity);
    const auto at = probabilities.find(prefix);
    if (at == probabilities.end())
      logits[2] = 0.0f;
    else
      for (std::size_t v = 0; v < at->second.size(); ++v) logits[v] = std::log(at->second[v]);
    return logits;
  });
}

struct Complete {
  Ids ids;
  double log_prob, score;
};

/// Enumerates all sentences of at most `longest` tokens from {2} and [3,V), scored in double
/// directly from the equations.
std::vector<Complete> enumerate(TableScorer::Logits logits, TableScorer::Attention attention,
                                const Ids& source, int vocabulary, int longest, double normalize,
                                double length_penalty, double beta) {
  std::vector<Complete> all;
  const auto visit = [&](auto&& self, Ids prefix, double log_prob,
                         std::vector<double> attended) -> void {
    const std::vector<float> row = logits(source, prefix);
    const double normalizer = TableScorer::log_normalizer(row);
    const std::vector<float> weights = attention(source, prefix);
    for (std::size_t i = 0; i < source.size(); ++i) attended[i] += weights[i];
    const double length = static_cast<double>(prefix.size()) + 1;
    double score = log_prob + row[2] - normalizer;
    const double whole = score;
    if (normalize != 0) score /= std::pow(length, normalize);
    if (length_penalty != 0)
      score *= std::pow(6, length_penalty) / std::pow(5 + length, length_penalty);
    for (const double a : attended) score += beta * std::log(std::min(a, 1.0));
    all.push_back({prefix, whole, score});
    if (static_cast<int>(prefix.size()) == longest) return;
    for (int v = 3; v < vocabulary; ++v) {
      Ids next = prefix;
      next.push_back(v);
      self(self, next, log_prob + row[v] - normalizer, attended);
    }
  };
  visit(visit, {}, 0.0, std::vector<double>(source.size(), 0.0));
  std::stable_sort(all.begin(), all.end(),
                   [](const Complete& a, const Complete& b) { return a.score > b.score; });
  return all;
}

TEST_F(BeamSearchTest, AWideBeamIsExhaustiveUnderEveryPenalty) {
  const int vocabulary = 6, longest = 4;
  TableScorer scorer = random_scorer(vocabulary);
  const auto logits = [&](const Ids& s, const Ids& p) {
    Rng rng = rng_of(s, p, 0);
    std::vector<float> row(vocabulary);
    for (float& x : row) x = 1.5f * rng.normal();
    return row;
  };
  const auto attention = [](const Ids& s, const Ids& p) {
    Rng rng = rng_of(s, p, 1);
    std::vector<float> row(s.size() + 1);
    float sum = 0;
    for (float& x : row) sum += x = std::exp(2.0f * rng.normal());
    for (float& x : row) x /= sum;
    return row;
  };
  const std::vector<Ids> sources = some_sources(5);
  struct Penalties {
    double normalize, length_penalty, coverage;
  };
  for (const Penalties& p : {Penalties{0, 0, 0},
                             {0.6, 0, 0},
                             {1, 0, 0},
                             {0, 0.6, 0},
                             {0, 1, 0},
                             {0, 0, 0.2},
                             {0, 0.8, 0.3},
                             {1, 0, 0.5}}) {
    SearchOptions o = options();
    o.beam_size = 130;  // there are 121 sentences
    o.ranking = {p.normalize, p.length_penalty, p.coverage};
    o.max_length_factor = 0;
    o.max_length_offset = longest;
    o.n_best = true;
    const auto results = beam_search(scorer, sources, o);
    o.n_best = false;
    const auto single = beam_search(scorer, sources, o);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto expected = enumerate(logits, attention, sources[i], vocabulary, longest,
                                      p.normalize, p.length_penalty, p.coverage);
      ASSERT_EQ(results[i].hypotheses.size(), expected.size());
      for (std::size_t h = 0; h < expected.size(); ++h) {
        EXPECT_NEAR(results[i].hypotheses[h].score, expected[h].score, 1e-5);
        if (h + 1 < expected.size() && expected[h].score - expected[h + 1].score < 1e-5)
          break;  // float cannot distinguish them
        EXPECT_EQ(results[i].hypotheses[h].ids, expected[h].ids) << h;
        EXPECT_NEAR(results[i].hypotheses[h].log_prob, expected[h].log_prob, 1e-5);
      }
      ASSERT_EQ(single[i].hypotheses.size(), 1u);
      EXPECT_EQ(single[i].hypotheses[0].ids, expected[0].ids);
    }
  }
}

TEST_F(BeamSearchTest, BeamOneIsGreedy) {
  const int vocabulary = 30;
  TableScorer scorer = random_scorer(vocabulary, 1.0);
  const std::vector<Ids> sources = some_sources(20);
  SearchOptions o = options();
  o.beam_size = 1;
  o.max_length_factor = 1.5;
  o.max_length_offset = 2;
  const auto results = beam_search(scorer, sources, o);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Ids greedy;
    const auto longest = static_cast<std::size_t>(1.5 * sources[i].size() + 2);
    while (greedy.size() < longest) {
      Rng rng = rng_of(sources[i], greedy, 0);
      int best = -1;
      float most = -infinity;
      for (int v = 0; v < vocabulary; ++v) {
        const float logit = 1.5f * rng.normal() + (v == 2 ? 1.0f : 0.0f);
        if (v >= 2 && logit > most) best = v, most = logit;
      }
      if (best == 2) break;
      greedy.push_back(best);
    }
    EXPECT_EQ(results[i].hypotheses.at(0).ids, greedy);
  }
}

TEST_F(BeamSearchTest, TheBeamFindsWhatGreedyMisses) {
  // Greedy search takes 3 (0.6) and then has at most 0.3; 4 (0.4) continues with probability 1.
  TableScorer scorer = table({{{}, {0, 0, 0, 0.6f, 0.4f, 0}},
                              {{3}, {0, 0, 0.3f, 0.3f, 0.2f, 0.2f}},
                              {{4}, {0, 0, 0, 0, 0, 1}}},
                             6);
  SearchOptions o = options();
  o.beam_size = 1;
  EXPECT_EQ(beam_search(scorer, std::vector<Ids>{{7}}, o)[0].hypotheses[0].ids, (Ids{3}));
  o.beam_size = 2;
  const auto result = beam_search(scorer, std::vector<Ids>{{7}}, o)[0].hypotheses[0];
  EXPECT_EQ(result.ids, (Ids{4, 5}));
  EXPECT_NEAR(result.log_prob, std::log(0.4), 1e-6);
  EXPECT_NEAR(result.score, std::log(0.4) / std::pow(8.0 / 6.0, 0.0), 1e-6);
}

TEST_F(BeamSearchTest, TheBeamNarrowsAsHypothesesFinish) {
  // Step 0 of beam 2 keeps 3 and </s>, so one place is left; the better continuation of 4 is never
  // explored.
  TableScorer scorer = table({{{}, {0, 0, 0.3f, 0.45f, 0.25f}}, {{3}, {0, 0, 0.5f, 0.5f, 0}}}, 5);
  SearchOptions o = options();
  o.beam_size = 2;
  o.n_best = true;
  const auto result = beam_search(scorer, std::vector<Ids>{{7}}, o)[0].hypotheses;
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].ids, Ids{});
  EXPECT_NEAR(result[0].log_prob, std::log(0.3), 1e-6);
  EXPECT_EQ(result[1].ids, (Ids{3}));  // tie at 0.225: </s> has the lower id
  EXPECT_EQ(scorer.rows_of_steps, (std::vector<int>{1, 1}));
}

TEST_F(BeamSearchTest, TiesGoToTheBetterParentAndTheLowerId) {
  TableScorer scorer(8, [](const Ids&, const Ids& prefix) {
    std::vector<float> logits(8, 0.0f);
    if (prefix.size() < 2) logits[2] = -infinity;
    return logits;
  });
  SearchOptions o = options();
  o.beam_size = 3;
  o.n_best = true;
  o.max_length_factor = 0;
  o.max_length_offset = 2;
  const auto result = beam_search(scorer, std::vector<Ids>{{7}, {8, 9}}, o);
  for (const SentenceResult& sentence : result) {
    ASSERT_EQ(sentence.hypotheses.size(), 3u);
    EXPECT_EQ(sentence.hypotheses[0].ids, (Ids{3, 3}));
    EXPECT_EQ(sentence.hypotheses[1].ids, (Ids{3, 4}));
    EXPECT_EQ(sentence.hypotheses[2].ids, (Ids{3, 5}));
  }
}

TEST_F(BeamSearchTest, EosAtStepZeroGivesAnEmptyOutputAndLeavesTheBatch) {
  TableScorer scorer(5, [](const Ids& source, const Ids& prefix) {
    std::vector<float> logits(5, -infinity);
    logits[source[0] == 3 || prefix.size() == 4 ? 2 : 4] = 0.0f;
    return logits;
  });
  const auto result = beam_search(scorer, std::vector<Ids>{{3}, {4}, {3}}, options());
  EXPECT_EQ(result[0].hypotheses.at(0).ids, Ids{});
  EXPECT_EQ(result[0].hypotheses[0].log_probs.size(), 1u);
  EXPECT_EQ(result[1].hypotheses.at(0).ids, (Ids{4, 4, 4, 4}));
  EXPECT_EQ(scorer.rows_of_steps, (std::vector<int>{3, 1, 1, 1, 1}));
}

TEST_F(BeamSearchTest, SpecialTokensAreNotProduced) {
  TableScorer scorer(5, [](const Ids&, const Ids& prefix) {
    return prefix.empty() ? std::vector<float>{5, 9, 0, 1, 0} : std::vector<float>{0, 0, 9, 0, 0};
  });
  SearchOptions o = options();
  EXPECT_EQ(beam_search(scorer, std::vector<Ids>{{7}}, o)[0].hypotheses[0].ids, (Ids{3}));
  o.allow_unk = true;
  EXPECT_EQ(beam_search(scorer, std::vector<Ids>{{7}}, o)[0].hypotheses[0].ids, (Ids{0}));
}

TEST_F(BeamSearchTest, OutputsAreNoLongerThanAllowed) {
  TableScorer scorer(5, [](const Ids&, const Ids&) { return std::vector<float>{0, 0, -20, 1, 0}; });
  for (const int beam : {1, 4}) {
    SearchOptions o = options();
    o.beam_size = beam;
    // Without normalization the wide beam may stop at once, because </s> costs as much now as
    // later.
    o.ranking.normalize = 1;
    o.max_length_factor = 1.5;
    o.max_length_offset = 2;
    const auto result = beam_search(scorer, std::vector<Ids>{{7}, {7, 7, 7}, {}}, o);
    EXPECT_EQ(result[0].hypotheses.at(0).ids.size(), 3u);
    EXPECT_EQ(result[1].hypotheses.at(0).ids.size(), 6u);
    EXPECT_EQ(result[2].hypotheses.at(0).ids.size(), 2u);
    EXPECT_LT(result[0].hypotheses[0].log_probs.back(), -20.0f)
        << "completed by </s>, whose probability counts";
  }
}

TEST_F(BeamSearchTest, AllFinishedGivesWhatFinishedBeforeTheBestWasKnown) {
  const std::vector<Ids> sources = some_sources(32);
  TableScorer scorer = random_scorer(40, 1.0);
  SearchOptions o = options();
  const auto best = beam_search(scorer, sources, o);
  o.all_finished = true;
  const auto finished = beam_search(scorer, sources, o);
  o.n_best = true;
  const auto lists = beam_search(scorer, sources, o);
  std::size_t several = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<Hypothesis>& all = finished[i].hypotheses;
    EXPECT_EQ(all.at(0).ids, best[i].hypotheses.at(0).ids);
    several += all.size() > 1;
    for (const Hypothesis& each : all)
      EXPECT_TRUE(std::any_of(lists[i].hypotheses.begin(), lists[i].hypotheses.end(),
                              [&](const Hypothesis& listed) { return listed.ids == each.ids; }));
  }
  EXPECT_GT(several, 0u);
}

TEST(SearchTree, AttentionOfDeadBranchesIsFreed) {
  SearchTree tree;
  const std::vector<float> values{1, 2, 3};
  const std::int32_t slot = tree.attention.add(values);
  tree.attention.add_user(slot);  // two extensions of the same row
  const std::int32_t left = tree.add(-1, 5, -1, -1, slot), right = tree.add(-1, 6, -2, -2, slot);
  const std::int32_t leaf = tree.add(left, 7, -1, -2, tree.attention.add(values));
  tree.drop(left);  // its row has been extended
  EXPECT_EQ(tree.attention.size(), 6u);
  tree.drop(right);  // its row has not
  EXPECT_EQ(tree.attention.size(), 6u);
  EXPECT_EQ(tree.attention[tree.nodes[static_cast<std::size_t>(leaf)].attention][2], 3.0f);
  tree.drop(leaf);
  EXPECT_EQ(tree.attention.size(), 0u);
  EXPECT_EQ(tree.attention.peak(), 6u);
  EXPECT_EQ(tree.attention.add(values), 0);  // slots are used again
}

TEST_F(BeamSearchTest, BatchOrderAndThreadsDoNotMatter) {
  const std::vector<Ids> sources = some_sources(64);
  SearchOptions o = options();
  o.want_attention = o.n_best = true;
  o.ranking = {0, 0.6, 0.2};
  o.max_length_factor = 2;
  TableScorer scorer = random_scorer(40, 1.0);
  const auto reference = beam_search(scorer, sources, o);
  const auto same = [](const SentenceResult& a, const SentenceResult& b) {
    return std::equal(a.hypotheses.begin(), a.hypotheses.end(), b.hypotheses.begin(),
                      b.hypotheses.end(), [](const Hypothesis& x, const Hypothesis& y) {
                        return x.ids == y.ids && x.log_probs == y.log_probs &&
                               x.log_prob == y.log_prob && x.score == y.score &&
                               x.attention == y.attention;
                      });
  };
  std::vector<int> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  for (const int threads : {1, 2, 4}) {
    ThreadPool other(threads);
    o.cpu.pool = &other;
    Rng rng(3);
    for (const std::size_t size : {1u, 2u, 7u, 64u}) {
      for (std::size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[rng.below(i + 1)]);
      for (std::size_t begin = 0; begin < order.size(); begin += size) {
        std::vector<Ids> batch;
        for (std::size_t i = begin; i < std::min(begin + size, order.size()); ++i)
          batch.push_back(sources[order[i]]);
        const auto results = beam_search(scorer, batch, o);
        for (std::size_t i = 0; i < batch.size(); ++i)
          EXPECT_TRUE(same(results[i], reference[order[begin + i]]));
      }
    }
  }
}

TEST_F(BeamSearchTest, NBestListsAreSortedAndDistinct) {
  SearchOptions o = options();
  o.beam_size = 12;
  o.n_best = true;
  TableScorer scorer = random_scorer(25, 1.0);
  for (const SentenceResult& sentence : beam_search(scorer, some_sources(20), o)) {
    ASSERT_EQ(sentence.hypotheses.size(), 12u);
    std::set<Ids> distinct;
    for (std::size_t i = 0; i < 12; ++i) {
      const Hypothesis& h = sentence.hypotheses[i];
      distinct.insert(h.ids);
      EXPECT_GE(sentence.hypotheses[i == 0 ? 0 : i - 1].score, h.score);
      EXPECT_NEAR(h.log_prob, std::accumulate(h.log_probs.begin(), h.log_probs.end(), 0.0), 1e-4);
      EXPECT_NEAR(h.score, h.log_prob / std::pow((5.0 + h.ids.size() + 1) / 6.0, 0.0), 1e-5);
    }
    EXPECT_EQ(distinct.size(), 12u);
  }
}

TEST_F(BeamSearchTest, StoppingEarlyChangesNoResultAndSavesSteps) {
  const std::vector<Ids> sources = some_sources(60);
  for (const Ranking& ranking :
       {Ranking{}, Ranking{1, 0, 0}, Ranking{0, 0.6, 0}, Ranking{0, 1, 0.2}}) {
    SearchOptions o = options();
    o.ranking = ranking;
    TableScorer scorer = random_scorer(20, 1.5);
    const auto early = beam_search(scorer, sources, o);
    const std::size_t steps =
        std::accumulate(scorer.rows_of_steps.begin(), scorer.rows_of_steps.end(), 0u);
    scorer.rows_of_steps.clear();
    o.n_best = true;  // runs until no hypothesis is live
    const auto whole = beam_search(scorer, sources, o);
    EXPECT_LT(steps, std::accumulate(scorer.rows_of_steps.begin(), scorer.rows_of_steps.end(), 0u));
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(early[i].hypotheses[0].ids, whole[i].hypotheses[0].ids);
      EXPECT_EQ(early[i].hypotheses[0].score, whole[i].hypotheses[0].score);
    }
  }
}

TEST_F(BeamSearchTest, ForcedDecodingGivesTheScoresOfTheSearch) {
  const std::vector<Ids> sources = some_sources(30);
  SearchOptions o = options();
  o.n_best = o.want_attention = true;
  TableScorer scorer = random_scorer(40, 1.0);
  const auto results = beam_search(scorer, sources, o);
  std::vector<Ids> repeated, targets;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const Hypothesis& h : results[i].hypotheses) {
      repeated.push_back(sources[i]);
      targets.push_back(h.ids);
    }
  const auto forced = force_decode(scorer, repeated, targets, true);
  std::size_t at = 0;
  for (const SentenceResult& sentence : results)
    for (const Hypothesis& h : sentence.hypotheses) {
      EXPECT_EQ(forced[at].log_probs, h.log_probs);
      EXPECT_EQ(forced[at].log_prob, h.log_prob);
      EXPECT_EQ(forced[at].attention, h.attention);
      ++at;
    }
}

TEST_F(BeamSearchTest, ForcedDecodingReadsTheTable) {
  TableScorer scorer =
      table({{{}, {0.1f, 0, 0.2f, 0.45f, 0.25f}}, {{3}, {0, 0, 0.5f, 0.125f, 0.375f}}}, 5);
  const auto scores =
      force_decode(scorer, std::vector<Ids>{{7}, {7, 7}, {7}}, std::vector<Ids>{{3}, {}, {3, 4}});
  EXPECT_NEAR(scores[0].log_prob, std::log(0.45 * 0.5), 1e-6);
  EXPECT_NEAR(scores[1].log_prob, std::log(0.2), 1e-6);
  EXPECT_NEAR(scores[2].log_probs.at(1), std::log(0.375), 1e-6);
  EXPECT_EQ(scores[2].log_probs.size(), 3u);
  EXPECT_EQ(scorer.rows_of_steps, (std::vector<int>{3, 2, 1}));
  EXPECT_THROW(force_decode(scorer, std::vector<Ids>{{7}}, std::vector<Ids>{{5}}), Error);
  EXPECT_THROW(force_decode(scorer, std::vector<Ids>{{7}}, std::vector<Ids>{}), Error);
}

TEST_F(BeamSearchTest, RefusesWhatIsNoProbability) {
  for (const float bad : {std::nanf(""), infinity}) {
    TableScorer scorer(5, [=](const Ids&, const Ids& prefix) {
      return prefix.size() < 2 ? std::vector<float>{0, 0, 0, 1, 0}
                               : std::vector<float>{0, 0, 0, bad, 0};
    });
    EXPECT_THROW(beam_search(scorer, std::vector<Ids>{{7}}, options()), Error);
  }
  TableScorer dead_end(5, [](const Ids&, const Ids&) {
    return std::vector<float>{0, 0, -infinity, -infinity, -infinity};
  });
  EXPECT_THROW(beam_search(dead_end, std::vector<Ids>{{7}}, options()), Error);
}

TEST(SearchOptionsTest, RefusesWhatContradicts) {
  SearchSpec spec;
  EXPECT_EQ(search_options(spec, {}).ranking.length_penalty, 0.6);
  spec.normalize = 0.6;
  EXPECT_THROW(search_options(spec, {}), Error);
  spec.length_penalty = 0;
  EXPECT_EQ(search_options(spec, {}).ranking.normalize, 0.6);
}

// SearchSpec is validated with the ranges of the options, also when it was not parsed.
TEST(SearchOptionsTest, RejectsValuesOutOfRange) {
  SearchSpec spec;
  spec.beam_size = 1024;
  EXPECT_EQ(search_options(spec, {}).beam_size, 1024);
  for (const int wrong : {0, 1025}) {
    spec.beam_size = wrong;
    try {
      search_options(spec, {});
      FAIL() << "a beam of " << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_EQ(error.what(),
                "beam-size: '" + std::to_string(wrong) + "' is not an integer from 1 to 1024");
    }
  }
  spec = {};
  spec.length_penalty = std::nan("");
  EXPECT_THROW(search_options(spec, {}), Error);
}

TEST(RankingTest, FollowsWuEtAlAndMarian) {
  EXPECT_NEAR((Ranking{0, 0.6, 0}.score(-3.0f, 9, 0)), -3.0 / std::pow(14.0 / 6.0, 0.6), 1e-6);
  EXPECT_NEAR((Ranking{0.6, 0, 0}.score(-3.0f, 9, 0)), -3.0 / std::pow(9.0, 0.6), 1e-6);
  EXPECT_NEAR((Ranking{0, 0, 0.2}.score(-3.0f, 9, -1.5)), -3.3, 1e-6);
  const std::vector<double> attended{0.5, 1.7, 0.25};
  EXPECT_NEAR(coverage(attended), std::log(0.125), 1e-12);
}

}  // namespace
}  // namespace nmt
