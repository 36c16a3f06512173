// Beam search on a device, here with the CPU's memory, must be bit-identical to the search on the
// host.

#include "core/error.h"
#include "search/beam/beam_search.h"
#include "search/beam/ensemble_scorer.h"
#include "table_scorer.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class DeviceSearchTest : public testing::Test {
 protected:
  test::Engine engine{2};

  SearchOptions options(int beam) {
    SearchOptions o;
    o.cpu = engine.context.cpu;
    o.beam_size = beam;
    return o;
  }
  static std::vector<Ids> some_sources(int n) {
    std::vector<Ids> sources(n);
    Rng rng(12);
    for (Ids& source : sources) {
      source.resize(1 + rng.below(9));
      for (auto& id : source) id = static_cast<std::int32_t>(3 + rng.below(50));
    }
    return sources;
  }
  void expect_same(TableScorer scorer, const std::vector<Ids>& sources, const SearchOptions& o,
                   const std::string& what) {
    scorer.device = nullptr;
    const auto host = beam_search(scorer, sources, o);
    scorer.device = &engine.context;
    same(host, beam_search(scorer, sources, o), what);
  }
  static void same(const std::vector<SentenceResult>& a, const std::vector<SentenceResult>& b,
                   const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].hypotheses.size(), b[i].hypotheses.size()) << what << " sentence " << i;
      for (std::size_t h = 0; h < a[i].hypotheses.size(); ++h) {
        const Hypothesis &x = a[i].hypotheses[h], &y = b[i].hypotheses[h];
        EXPECT_EQ(x.ids, y.ids) << what << " sentence " << i << " hypothesis " << h;
        EXPECT_EQ(x.log_probs, y.log_probs) << what;
        EXPECT_EQ(x.log_prob, y.log_prob) << what;
        EXPECT_EQ(x.score, y.score) << what;
      }
    }
  }
};

TEST_F(DeviceSearchTest, FindsWhatTheHostFinds) {
  for (const int beam : {1, 2, 5, 12})
    for (const int vocabulary : {5, 40})
      for (const double eos_bonus : {-1.5, 1.0})
        for (const Ranking& ranking : {Ranking{}, Ranking{0.7, 0, 0}, Ranking{0, 0.6, 0}})
          for (const bool n_best : {false, true}) {
            SearchOptions o = options(beam);
            o.ranking = ranking;
            o.n_best = n_best;
            o.allow_unk = beam == 2;
            o.max_length_factor = 2.5;
            expect_same(
                random_scorer(vocabulary, eos_bonus), some_sources(7), o,
                "beam " + std::to_string(beam) + " vocabulary " + std::to_string(vocabulary));
          }
  for (const int count : {1, 3})
    expect_same(random_scorer(30), some_sources(count), options(2), "few sentences");
}

// Few distinct scores, many of them impossible: ties, fewer extensions than the beam width, and
// sums above 0.
TEST_F(DeviceSearchTest, RanksTiesAndImpossibleExtensionsAlike) {
  for (const float shift : {0.0f, 3.0f}) {
    const TableScorer scorer(12, [shift](const Ids& source, const Ids& prefix) {
      Rng rng = rng_of(source, prefix, 7);
      std::vector<float> logits(12);
      for (float& logit : logits)
        logit = rng.below(3) == 0 ? -infinity : shift + static_cast<float>(rng.below(2));
      logits[3 + prefix.size() % 9] = shift;
      if (prefix.size() < 3 && source.size() % 2 == 0) logits[2] = -infinity;
      return logits;
    });
    for (const int beam : {1, 3, 8, 20})
      for (const bool n_best : {false, true}) {
        SearchOptions o = options(beam);
        o.n_best = n_best;
        o.ranking.normalize = shift > 0 ? 1.0 : 0.0;
        o.max_length_factor = 0;
        o.max_length_offset = 19;
        TableScorer closing = scorer;
        expect_same(closing, some_sources(9), o, "beam " + std::to_string(beam));
      }
  }
}

TEST_F(DeviceSearchTest, OutputsMayBeAsShortOrLongAsALook) {
  for (const int longest : {0, 1, 6, 7, 8, 15, 16}) {
    SearchOptions o = options(3);
    o.n_best = true;
    o.max_length_factor = 0;
    o.max_length_offset = longest;
    expect_same(random_scorer(9, -30.0), some_sources(4), o, "longest " + std::to_string(longest));
  }
}

// The first id of sentence i determines its length: rows leave the batch at the synchronizations
// after 8 and 16 tokens.
TEST_F(DeviceSearchTest, ContextDoesNotLengthenTheOutput) {
  TableScorer endless(40, [](const Ids&, const Ids&) {
    std::vector<float> logits(40, -5.0f);
    logits[7] = 5.0f;
    return logits;
  });
  SearchOptions o = options(2);
  o.ranking = {0, 0.6, 0};
  o.max_length_factor = 2;
  o.max_length_offset = 1;
  const std::vector<Ids> sources{{5, 6, 2, 8}, {5, 6, 7}};
  const std::vector<std::size_t> contexts{3, 0};
  o.contexts = contexts;
  expect_same(endless, sources, o, "context");
  endless.device = &engine.context;
  const std::vector<SentenceResult> results = beam_search(endless, sources, o);
  EXPECT_EQ(results[0].hypotheses.front().ids.size(), 3u);
  EXPECT_EQ(results[1].hypotheses.front().ids.size(), 7u);
}

TEST_F(DeviceSearchTest, FinishedRowsLeaveTheBatch) {
  const TableScorer scorer(6, [](const Ids& source, const Ids& prefix) {
    std::vector<float> logits(6, 0.0f);
    logits[2] = static_cast<int>(prefix.size()) < source[0] ? -infinity : 50.0f;
    return logits;
  });
  const std::vector<Ids> sources{{3}, {20}, {3}, {12}};
  SearchOptions o = options(2);
  o.max_length_offset = 30;
  expect_same(scorer, sources, o, "leaving");
  TableScorer counted = scorer;
  counted.device = &engine.context;
  beam_search(counted, sources, o);
  std::vector<int> rows{4};
  rows.insert(rows.end(), 8, 8);  // beam 2, all four sentences; after 8 steps two have finished
  rows.insert(rows.end(), 8, 4);  // the step that compacts the batch still reads 8 rows
  rows.insert(rows.end(), 7, 2);
  EXPECT_EQ(counted.rows_of_steps, rows);
}

TEST_F(DeviceSearchTest, AnEnsembleChoosesThereToo) {
  TableScorer a = random_scorer(20, 0.5), b = random_scorer(20, -0.5);
  EnsembleScorer both(engine.context.cpu, {{&a, nullptr, 1}, {&b, nullptr, 2}},
                      Combination::log_probabilities, 100);
  const auto sources = some_sources(7);
  SearchOptions o = options(4);
  o.n_best = true;
  const auto host = beam_search(both, sources, o);
  a.device = &engine.context;
  same(host, beam_search(both, sources, o), "one member on the device: the host chooses");
  b.device = &engine.context;
  same(host, beam_search(both, sources, o), "both");
}

// Attention requires the search on the host.
TEST_F(DeviceSearchTest, AttentionIsKeptOnTheHost) {
  TableScorer scorer = random_scorer(20, 0.5);
  SearchOptions o = options(4);
  o.want_attention = true;
  const auto host = beam_search(scorer, some_sources(3), o);
  scorer.device = &engine.context;
  const auto chosen = beam_search(scorer, some_sources(3), o);
  same(host, chosen, "attention");
  EXPECT_FALSE(chosen[0].hypotheses[0].attention.empty());
}

TEST_F(DeviceSearchTest, RefusesWhatIsNoProbabilityWithTheSameWords) {
  const auto message = [&](TableScorer scorer, const Context* device) -> std::string {
    scorer.device = device;
    try {
      beam_search(scorer, std::vector<Ids>{{3}, {7}}, options(2));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    const TableScorer scorer(5, [=](const Ids& source, const Ids& prefix) {
      if (prefix.size() < 2 || source[0] == 3) return std::vector<float>{0, 0, -9, 1, 0};
      return bad == -infinity ? std::vector<float>(5, bad) : std::vector<float>{0, 0, -9, bad, 0};
    });
    const std::string expected = message(scorer, nullptr);
    EXPECT_NE(expected, "");
    EXPECT_EQ(message(scorer, &engine.context), expected);
  }
}

}  // namespace
}  // namespace nmt
