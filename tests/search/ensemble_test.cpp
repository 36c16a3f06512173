#include "kernels/decoding/ensemble.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "search/batch_translator.h"
#include "search/beam/ensemble_scorer.h"
#include "search/beam/force_decode.h"
#include "small_vocabulary.h"
#include "table_scorer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr int vocabulary = 9;

class EnsembleTest : public testing::Test {
 protected:
  ThreadPool pool{2};
  Cpu cpu{&pool};
  std::vector<Ids> sources{{3, 4, 5}, {6}, {4, 4, 7, 8, 3}, {5, 3}};
  SearchOptions options() {
    SearchOptions o;
    o.cpu = cpu;
    o.n_best = o.want_attention = true;
    o.ranking = {0, 0.6, 0.1};
    return o;
  }
};

// Another random table, over the reversed source.
TableScorer mirrored() {
  return TableScorer(
      vocabulary,
      [](const Ids& source, const Ids& prefix) {
        Rng rng = rng_of(prefix, source, 4);
        std::vector<float> row(vocabulary);
        for (float& x : row) x = 1.5f * rng.normal();
        return row;
      },
      [](const Ids& source, const Ids&) {
        std::vector<float> weights(source.size() + 1, 0.0f);
        weights[0] = 1;
        return weights;
      });
}

bool same(const std::vector<SentenceResult>& a, const std::vector<SentenceResult>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].hypotheses.size() != b[i].hypotheses.size()) return false;
    for (std::size_t h = 0; h < a[i].hypotheses.size(); ++h) {
      const Hypothesis &x = a[i].hypotheses[h], &y = b[i].hypotheses[h];
      if (x.ids != y.ids || x.log_probs != y.log_probs) return false;
    }
  }
  return a.size() == b.size();
}

TEST_F(EnsembleTest, OfIdenticalModelsSaysWhatOneSays) {
  TableScorer a = random_scorer(vocabulary, 1), b = random_scorer(vocabulary, 1),
              c = random_scorer(vocabulary, 1);
  const auto single = beam_search(a, sources, options());
  for (const Combination combination :
       {Combination::log_probabilities, Combination::probabilities}) {
    EnsembleScorer three(cpu, {{&a, nullptr, 1}, {&b, nullptr, 1}, {&c, nullptr, 5}}, combination,
                         100);
    const auto together = beam_search(three, sources, options());
    EXPECT_TRUE(same(single, together));
    for (std::size_t i = 0; i < single.size(); ++i)
      for (std::size_t at = 0; at < single[i].hypotheses[0].attention.size(); ++at)
        EXPECT_NEAR(single[i].hypotheses[0].attention[at], together[i].hypotheses[0].attention[at],
                    1e-6);
  }
}

// Computed by hand: p = (1/2, 1/4, 1/4) and q = (1/8, 3/4, 1/8) with weights 3 and 1. The logits
// are shifted, which must not matter.
TEST_F(EnsembleTest, CombinesAsByHand) {
  const double p[] = {0.5, 0.25, 0.25}, q[] = {0.125, 0.75, 0.125};
  const auto table = [](const double* probabilities, double shift, float first) {
    std::vector<float> row;
    for (int v = 0; v < 3; ++v)
      row.push_back(static_cast<float>(std::log(probabilities[v]) + shift));
    return TableScorer(
        3, [row](const Ids&, const Ids&) { return row; },
        [first](const Ids&, const Ids&) {
          return std::vector<float>{first, 1 - first};
        });
  };
  TableScorer a = table(p, 2, 0.25f), b = table(q, -7, 0.75f);
  const std::vector<Ids> source{{1}};
  const std::int32_t zero = 0;
  for (const Combination combination :
       {Combination::log_probabilities, Combination::probabilities}) {
    EnsembleScorer both(cpu, {{&a, nullptr, 3}, {&b, nullptr, 1}}, combination, 100);
    const auto decoding = both.begin(source, true);
    const DecodingStep step = decoding->advance(std::span(&zero, 1), std::span(&zero, 1));
    ASSERT_EQ(step.rows, 1);
    const NextTokens next = decoding->score(0, 1);
    for (int v = 0; v < 3; ++v) {
      const double expected = combination == Combination::log_probabilities
                                  ? 0.75 * std::log(p[v]) + 0.25 * std::log(q[v])
                                  : std::log(0.75 * p[v] + 0.25 * q[v]);
      EXPECT_NEAR(next.logits[v] - next.log_normalizer[0], expected, 2e-6);
    }
    EXPECT_NEAR(step.attention[0], 0.75 * 0.25 + 0.25 * 0.75, 1e-6);
    EXPECT_NEAR(step.attention[1], 0.75 * 0.75 + 0.25 * 0.25, 1e-6);
  }
}

// Probabilities below the range of float, a probability of 0, and a NaN.
TEST_F(EnsembleTest, ProbabilitiesFarBelowOne) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> p{0, -300, -2000, none, none, std::nanf("")},
      q{0, -310, -2001, -500, none, -1};
  const std::vector<float> zero{0};
  std::vector<float> out(p.size());
  const kernels::MemberScores members[] = {{p.data(), zero.data(), 0.75},
                                           {q.data(), zero.data(), 0.25}};
  kernels::combine_scores(cpu, 1, static_cast<std::int64_t>(p.size()), members, true, out.data());
  for (std::size_t v = 0; v < 4; ++v) {  // long double reaches down to e^-11355
    const long double sum = 0.75L * std::exp(static_cast<long double>(p[v])) +
                            0.25L * std::exp(static_cast<long double>(q[v]));
    EXPECT_NEAR(out[v], static_cast<double>(std::log(sum)), 1e-6 * std::abs(q[v]) + 1e-7) << v;
  }
  EXPECT_EQ(out[4], none);
  EXPECT_TRUE(std::isnan(out[5]));
}

// Whole rows of log-probabilities as the definition of one element, to the bit.
TEST_F(EnsembleTest, RowsAreTheirElements) {
  for (const std::int64_t n : {1, 7, 512, 513, 1100}) {
    Rng rng(static_cast<std::uint64_t>(n));
    std::vector<float> logits[3], normalizers[3];
    std::vector<kernels::MemberScores> members;
    for (int m = 0; m < 3; ++m) {
      for (std::int64_t i = 0; i < 2 * n; ++i) logits[m].push_back(20 * rng.uniform() - 10);
      normalizers[m] = {rng.uniform(), 9 * rng.uniform()};
      members.push_back({logits[m].data(), normalizers[m].data(), 0.1 + m});
    }
    logits[0][0] = -std::numeric_limits<float>::infinity();
    std::vector<float> out(static_cast<std::size_t>(2 * n));
    kernels::combine_scores(cpu, 2, n, members, false, out.data());
    for (std::int64_t i = 0; i < 2 * n; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)],
                kernels::combined(members.data(), 3, i / n, i, false))
          << n << " " << i;
  }
}

TEST_F(EnsembleTest, TheSameForEveryBatchAndForForcedDecoding) {
  TableScorer a = random_scorer(vocabulary, 1), b = mirrored();
  for (const Combination combination :
       {Combination::log_probabilities, Combination::probabilities}) {
    EnsembleScorer both(cpu, {{&a, nullptr, 2}, {&b, nullptr, 1}}, combination, 100);
    const auto all = beam_search(both, sources, options());
    EXPECT_FALSE(same(all, beam_search(a, sources, options())));
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto alone = beam_search(both, std::vector<Ids>{sources[i]}, options());
      EXPECT_TRUE(same(alone, {all[i]}));
      EXPECT_EQ(alone[0].hypotheses[0].attention, all[i].hypotheses[0].attention);
      const auto forced = force_decode(both, std::vector<Ids>{sources[i]},
                                       std::vector<Ids>{all[i].hypotheses[0].ids});
      EXPECT_EQ(forced[0].log_probs, all[i].hypotheses[0].log_probs);
    }
  }
}

// A member with its own source vocabulary encodes the text, whatever the ids of the first member.
TEST_F(EnsembleTest, MembersMayHaveTheirOwnSourceVocabulary) {
  const Vocabulary& words = small_vocabulary();
  TableScorer first = random_scorer(words.size(), 1), second = random_scorer(words.size(), 1);
  EnsembleScorer both(cpu, {{&first}, {&second, &words, 1}}, Combination::log_probabilities, 4);
  SearchSpec spec;
  spec.max_length = 4;
  BatchTranslator translator(both, words, words, translator_options(spec, cpu)),
      single(first, words, words, translator_options(spec, cpu));
  const std::vector<std::string> lines{"the quick brown fox jumps over the lazy dog", "", "fox"};
  const auto together = translator.translate(lines), alone = single.translate(lines);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(together[i].outputs[0].text, alone[i].outputs[0].text);
  ASSERT_EQ(second.encoded.size(), 2u);
  for (const Ids& ids : second.encoded) EXPECT_LE(ids.size(), 4u);
  EXPECT_THROW(both.begin(std::vector<Ids>{{3}}, false), Error);
}

TEST_F(EnsembleTest, ACropOfAMembersOwnSourceIsReportedOnce) {
  const Vocabulary& words = small_vocabulary();
  TableScorer first = random_scorer(words.size(), 1), second = random_scorer(words.size(), 1);
  const auto shared = std::make_shared<std::atomic<bool>>(false);
  const std::vector<Ids> ids{{3}, {4}};
  const std::vector<std::string> lines{"the fox", "the quick brown fox jumps over the lazy dog"};
  testing::internal::CaptureStderr();
  for (int worker = 0; worker < 2; ++worker) {
    EnsembleScorer both(cpu, {{&first}, {&second, &words, 1}}, Combination::log_probabilities, 8,
                        shared);
    both.begin(ids, lines, false);
    both.begin(ids, lines, false);
  }
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_NE(warnings.find(fmt::format("a line has {} tokens", words.encode(lines[1]).size())),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("only the first 8 (max-length)"), std::string::npos) << warnings;
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1) << warnings;
}

TEST_F(EnsembleTest, RefusesWhatDoesNotFit) {
  TableScorer a = random_scorer(vocabulary), b = random_scorer(vocabulary + 1);
  const auto make = [&](std::vector<EnsembleScorer::Member> members) {
    EnsembleScorer e(cpu, std::move(members), Combination::probabilities, 9);
  };
  EXPECT_THROW(make({}), Error);
  EXPECT_THROW(make({{&a}, {&b}}), Error);
  EXPECT_THROW(make({{&a, nullptr, 1}, {&a, nullptr, 0}}), Error);
}

}  // namespace
}  // namespace nmt
