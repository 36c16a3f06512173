#include "eval/labels.h"

#include "core/error.h"
#include "core/rng.h"
#include "eval/significance.h"

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Labels = std::vector<std::string>;

std::vector<std::tuple<int, int, std::string>> spans(const Labels& labels) {
  std::vector<std::tuple<int, int, std::string>> out;
  for (const LabelSpan& span : spans_of(labels))
    out.emplace_back(static_cast<int>(span.begin), static_cast<int>(span.end), span.type);
  return out;
}

using Spans = std::vector<std::tuple<int, int, std::string>>;

TEST(Spans, AreConllevalsChunks) {
  EXPECT_EQ(spans({}), Spans{});
  EXPECT_EQ(spans({"O", "O"}), Spans{});
  // IOB2
  EXPECT_EQ(spans({"B-PER", "I-PER", "O", "B-LOC", "B-LOC"}),
            (Spans{{0, 2, "PER"}, {3, 4, "LOC"}, {4, 5, "LOC"}}));
  // IOB: I begins a span, B separates two of a type
  EXPECT_EQ(spans({"I-NP", "I-NP", "B-NP", "I-VP", "O", "I-NP"}),
            (Spans{{0, 2, "NP"}, {2, 3, "NP"}, {3, 4, "VP"}, {5, 6, "NP"}}));
  // IOBES and BILOU
  EXPECT_EQ(spans({"S-A", "B-A", "I-A", "E-A", "S-B"}),
            (Spans{{0, 1, "A"}, {1, 4, "A"}, {4, 5, "B"}}));
  EXPECT_EQ(spans({"U-A", "B-A", "L-A", "O"}), (Spans{{0, 1, "A"}, {1, 3, "A"}}));
  // Inconsistent labels
  EXPECT_EQ(spans({"E-A", "E-A", "I-A", "I-B"}),
            (Spans{{0, 1, "A"}, {1, 2, "A"}, {2, 3, "A"}, {3, 4, "B"}}));
  EXPECT_EQ(spans({"B-A", "I-B", "I-B"}), (Spans{{0, 1, "A"}, {1, 3, "B"}}));
}

TEST(UnknownLabels, AreCountedAndSorted) {
  const auto unknown = [](const Labels& known, const Labels& lines) {
    std::vector<std::pair<std::string, int>> out;
    for (const UnknownLabel& each : unknown_labels(known, lines))
      out.emplace_back(each.label, static_cast<int>(each.count));
    return out;
  };
  using Found = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(unknown({"N", "V"}, {"N V", "", "V"}), Found{});
  EXPECT_EQ(unknown({"N", "V"}, {"X N A", "A n", "O"}),
            (Found{{"A", 2}, {"O", 1}, {"X", 1}, {"n", 1}}));
  // A span can be right in each scheme, and O is none; another type or another form cannot.
  const Labels spans{"B-PER", "I-PER", "S-LOC"};
  EXPECT_EQ(unknown(spans, {"O U-PER B-LOC L-LOC"}), Found{});
  EXPECT_EQ(unknown(spans, {"B-ORG I-ORG B-ORG", "PER B-PER"}),
            (Found{{"B-ORG", 2}, {"I-ORG", 1}, {"PER", 1}}));
}

// The lists of cases of conlleval.pl (CoNLL-2000) for the beginning and the end of a chunk, one by
// one.
TEST(Spans, EqualConllevalOnRandomLabels) {
  const std::set<std::string> begins = {"BB", "IB", "OB", "OI", "EE", "EI", "OE", "BS",
                                        "IS", "OS", "ES", "SB", "SI", "SE", "SS", "EB"},
                              ends = {"BB", "BO", "IB", "IO", "EE", "EI", "EO", "BS",
                                      "IS", "SB", "SI", "SE", "SS", "SO", "ES", "EB"};
  Rng rng(3);
  for (int trial = 0; trial < 500; ++trial) {
    Labels labels;
    for (int i = 0; i < 8; ++i) {
      const char position = "OOBIES"[rng.below(6)];
      labels.push_back(position == 'O' ? "O"
                                       : std::string(1, position) + (rng.below(2) ? "-x" : "-y"));
    }
    Spans expected;
    std::string before = "O", type_before;
    int begin = -1;
    for (int i = 0; i <= 8; ++i) {
      const std::string label = i < 8 ? labels[i] : "O", type = label.substr(1),
                        both = before.substr(0, 1) + label.substr(0, 1);
      const bool changes = type != type_before;
      if (begin >= 0 && (ends.count(both) || (before != "O" && changes))) {
        expected.emplace_back(begin, i, type_before.substr(1));
        begin = -1;
      }
      if (begins.count(both) || (label != "O" && changes)) begin = i;
      before = label;
      type_before = type;
    }
    EXPECT_EQ(spans(labels), expected) << testing::PrintToString(labels);
  }
}

TEST(Spans, SchemesAreRecognized) {
  EXPECT_TRUE(are_span_labels(Labels{"O", "B-PER", "I-PER"}));
  EXPECT_TRUE(are_span_labels(Labels{"S-x"}));
  EXPECT_FALSE(are_span_labels(Labels{"O"}));
  EXPECT_FALSE(are_span_labels(Labels{"NOUN", "X", "PUNCT"}));
  EXPECT_FALSE(are_span_labels(Labels{"B-PER", "NN"}));
}

TEST(LabelMetrics, CountLabelsAndSpans) {
  const std::vector<std::string> reference = {"B-A I-A O B-B", "O O", "B-A"},
                                 hypothesis = {"B-A I-A O I-A", "O B-A", "B-A"};
  const auto accuracy = accuracy_metric(), errors = error_rate_metric(), f1 = span_f1_metric();
  const auto score = [&](const Metric& metric) {
    return metric.score(sentence_counts(metric, hypothesis, {reference}).sum());
  };
  EXPECT_DOUBLE_EQ(score(*accuracy), 100 * 5.0 / 7);
  EXPECT_DOUBLE_EQ(score(*errors), 100 * 2.0 / 7);
  // Of 4 predicted and 3 true spans, 2 are the same: precision 1/2, recall 2/3.
  EXPECT_DOUBLE_EQ(score(*f1), 100 * 2 * (0.5 * 2 / 3) / (0.5 + 2.0 / 3));
  const SentenceCounts counts = sentence_counts(*f1, hypothesis, {reference});
  EXPECT_EQ(f1->verbose(counts.sum()), "(P = 50.00 R = 66.67 spans = 3)");
  EXPECT_GT(confidence_interval(*f1, counts, 200).half_width, 0);
  EXPECT_THROW(accuracy->row("A B", {"A"}), Error);
  EXPECT_DOUBLE_EQ(f1->score({0, 0, 0}), 0);
}

}  // namespace
}  // namespace nmt
