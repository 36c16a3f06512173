#include "eval/significance.h"

#include "core/error.h"
#include "eval/numpy_generator.h"
#include "tests/eval/lines.h"

#include <cmath>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::references;

const std::vector<std::string> hypotheses = [] {
  std::vector<std::string> lines = test::hypotheses;
  lines[4] = references[4];
  return lines;
}();
const std::vector<std::string> others = {"Dies ist ein kleiner Test, oder?",
                                         "Der Mann geht und lacht.",
                                         "1.234,5 Euro kosten Dinge",
                                         "leer",
                                         "Ein Hund läuft.",
                                         "«Ja», sagte er – “vielleicht”. ",
                                         "Preis: 5 / kg"};

// The expected values are those of numpy 2.4 and sacreBLEU 2.6.0.
TEST(NumpyGenerator, EqualsDefaultRng) {
  NumpyGenerator raw(0);
  for (const std::uint64_t word :
       {11749869230777074271ULL, 4976686463289251617ULL, 755828109848996024ULL})
    EXPECT_EQ(raw.next64(), word);
  NumpyGenerator choice(12345);
  for (const std::uint32_t x : {4, 1, 5, 2, 1, 5, 4, 4, 6, 2, 5, 2, 3, 4, 1, 1, 1, 4, 4, 6})
    EXPECT_EQ(choice.below(7), x);
  NumpyGenerator long_seed((1ULL << 40) + 5);  // two words of entropy; a bound that rejects often
  for (const std::uint32_t x : {42477235U, 1349911287U, 1117753746U, 1761688279U})
    EXPECT_EQ(long_seed.below(3000000000U), x);
  NumpyGenerator many(12345);
  std::uint64_t sum = 0;
  for (int i = 0; i < 100000; ++i) sum += many.below(3003);
  EXPECT_EQ(sum, 149965047U);
  NumpyGenerator coin(12345);
  for (const char bit : std::string("1011100110000011111111110100110110110001"))
    EXPECT_EQ(coin.bit(), bit == '1');
}

TEST(Significance, IntervalsEqualSacrebleu) {
  BleuOptions add_k;
  add_k.smoothing = BleuSmoothing::add_k;
  add_k.smoothing_value = 0.5;
  ChrfOptions plus;
  plus.word_order = 2;
  struct Row {
    std::unique_ptr<Metric> metric;
    double score, mean, half_width;
  };
  Row rows[] = {{bleu_metric({}), 56.822485060818174, 57.320306763761096, 19.604689713613876},
                {bleu_metric(add_k), 57.46758654748889, 57.98127776795758, 19.180032295333266},
                {chrf_metric({}), 78.12184732735157, 78.51873779296875, 8.790382385253906},
                {chrf_metric(plus), 75.33443083539818, 75.68817901611328, 8.372734069824219}};
  for (const Row& row : rows) {
    const SentenceCounts counts = sentence_counts(*row.metric, hypotheses, {references});
    const Interval interval = confidence_interval(*row.metric, counts, 1000);
    EXPECT_NEAR(row.metric->score(counts.sum()), row.score, 1e-12) << row.metric->name();
    EXPECT_NEAR(interval.mean, row.mean, 1e-12) << row.metric->name();
    EXPECT_NEAR(interval.half_width, row.half_width, 1e-12) << row.metric->name();
  }
}

struct Paired {
  std::unique_ptr<Metric> metric;
  std::vector<SentenceCounts> systems;
  explicit Paired(std::unique_ptr<Metric> m) : metric(std::move(m)) {
    for (const auto& lines : {hypotheses, others})
      systems.push_back(sentence_counts(*metric, lines, {references}));
  }
};

TEST(Significance, PairedBootstrapEqualsSacrebleu) {
  const Paired bleu(bleu_metric({})), chrf(chrf_metric({}));
  auto results = paired_bootstrap(*bleu.metric, bleu.systems, 1000);
  EXPECT_LT(results[0].p_value, 0);
  EXPECT_NEAR(results[0].interval.mean, 57.320306763761096, 1e-12);
  EXPECT_EQ(results[1].p_value, 68 / 1001.0);
  EXPECT_NEAR(results[1].score, 34.26761224305091, 1e-12);
  EXPECT_NEAR(results[1].interval.mean, 32.35649444281304, 1e-12);
  EXPECT_NEAR(results[1].interval.half_width, 23.022102557835954, 1e-12);
  results = paired_bootstrap(*chrf.metric, chrf.systems, 1000);
  EXPECT_EQ(results[0].interval.mean, 78.51873779296875);  // float32
  EXPECT_EQ(results[1].p_value, 21 / 1001.0);
  EXPECT_EQ(results[1].interval.mean, 60.87274932861328);
  EXPECT_EQ(results[1].interval.half_width, 12.727294921875);
}

TEST(Significance, PairedRandomizationEqualsSacrebleu) {
  const Paired bleu(bleu_metric({})), chrf(chrf_metric({}));
  EXPECT_EQ(paired_randomization(*bleu.metric, bleu.systems, 2000)[1].p_value, 0.13343328335832083);
  EXPECT_EQ(paired_randomization(*chrf.metric, chrf.systems, 2000)[1].p_value, 0.11694152923538231);
}

TEST(Significance, Edges) {
  const auto metric = bleu_metric({});
  const SentenceCounts counts = sentence_counts(*metric, hypotheses, {references});
  EXPECT_EQ(paired_randomization(*metric, {counts, counts}, 50)[1].p_value,
            1 / 51.0);  // no trial has a larger difference
  const SentenceCounts one =
      sentence_counts(*metric, {"ein Haus ist hier"}, {{"ein Haus ist hier"}});
  EXPECT_EQ(confidence_interval(*metric, one, 10).half_width, 0);
  EXPECT_THROW(confidence_interval(*metric, counts, 1), Error);
  EXPECT_THROW(paired_bootstrap(*metric, {counts}, 10), Error);
  EXPECT_THROW(paired_bootstrap(*metric, {counts, one}, 10), Error);
  EXPECT_THROW(sentence_counts(*metric, {}, {{}}), Error);
  EXPECT_THROW(sentence_counts(*metric, {"a"}, {{"a", "b"}}), Error);
}

TEST(Significance, Signatures) {
  const std::string version = std::string("|version:nmt-") + NMT_VERSION;
  EXPECT_EQ(bleu_metric({})->signature(2, "bs:1000|seed:12345|"),
            "nrefs:2|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp" + version);
  EXPECT_EQ(chrf_metric({})->signature(1),
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no" + version);
  EXPECT_EQ(bleu_signature(multi_bleu_options(true), 1),
            "nrefs:1|case:lc|eff:no|tok:multi-bleu|smooth:none" + version);
  BleuOptions floor;
  floor.smoothing = BleuSmoothing::floor;
  EXPECT_EQ(bleu_signature(floor, 1),
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.10]" + version);
}

// multi-bleu.perl, computed by hand.
TEST(MultiBleu, SplitsAtWhiteSpace) {
  EXPECT_EQ(corpus_bleu({"a b c d e"}, {"a b x d e"}, multi_bleu_options(false)).score, 0.0);
  EXPECT_NEAR(corpus_bleu({"A b c d e f"}, {"a b c d e f"}, multi_bleu_options(true)).score, 100.0,
              1e-9);
  EXPECT_NEAR(corpus_bleu({"Ä b c d e f"}, {"ä b c d e f"}, multi_bleu_options(true)).score,
              100 * std::pow(5 / 6.0 * 4 / 5.0 * 3 / 4.0 * 2 / 3.0, 0.25),
              1e-9);  // Perl's lc on bytes does not change Ä
}

}  // namespace
}  // namespace nmt
