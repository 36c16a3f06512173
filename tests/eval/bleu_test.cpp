#include "eval/bleu.h"

#include "core/error.h"
#include "eval/chrf.h"
#include "eval/tokenize.h"
#include "tests/eval/lines.h"

#include <chrono>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::hypotheses;
using test::references;

BleuSmoothing smoothing(const std::string& name) {
  if (name == "exp") return BleuSmoothing::exp;
  if (name == "floor") return BleuSmoothing::floor;
  return name == "add-k" ? BleuSmoothing::add_k : BleuSmoothing::none;
}

// The expected values are those of sacreBLEU 2 on these lines.
TEST(Bleu, EqualsSacrebleu) {
  struct Row {
    const char* tokenizer;
    bool lowercase;
    const char* smooth;
    double score;
  };
  const Row rows[] = {
      {"13a", false, "exp", 52.822844689465},    {"13a", false, "floor", 52.822844689465},
      {"13a", false, "add-k", 54.313760004178},  {"13a", false, "none", 52.822844689465},
      {"13a", true, "exp", 58.582449067274},     {"13a", true, "floor", 58.582449067274},
      {"13a", true, "add-k", 59.856508338201},   {"13a", true, "none", 58.582449067274},
      {"intl", false, "exp", 53.321160887961},   {"intl", false, "floor", 53.321160887961},
      {"intl", false, "add-k", 54.535493748563}, {"intl", false, "none", 53.321160887961},
      {"intl", true, "exp", 58.320056296345},    {"intl", true, "floor", 58.320056296345},
      {"intl", true, "add-k", 59.389232356777},  {"intl", true, "none", 58.320056296345},
      {"none", false, "exp", 36.902643271221},   {"none", false, "floor", 36.902643271221},
      {"none", false, "add-k", 39.599720703682}, {"none", false, "none", 36.902643271221},
      {"none", true, "exp", 43.865403189487},    {"none", true, "floor", 43.865403189487},
      {"none", true, "add-k", 46.169736544558},  {"none", true, "none", 43.865403189487},
  };
  for (const Row& row : rows) {
    BleuOptions options;
    options.tokenizer = parse_enum<BleuTokenizer>(row.tokenizer, "tokenizer");
    options.lowercase = row.lowercase;
    options.smoothing = smoothing(row.smooth);
    EXPECT_NEAR(corpus_bleu(hypotheses, references, options).score, row.score, 1e-9)
        << row.tokenizer << row.lowercase << row.smooth;
  }
}

TEST(Chrf, EqualsSacrebleu) {
  struct Row {
    bool lowercase;
    int word_order;
    bool whitespace;
    double score;
  };
  const Row rows[] = {
      {false, 0, false, 73.507464368414}, {false, 0, true, 73.429352307720},
      {false, 2, false, 71.023334160597}, {false, 2, true, 70.962609259504},
      {true, 0, false, 77.494167357980},  {true, 0, true, 77.224876329311},
      {true, 2, false, 75.213844365193},  {true, 2, true, 75.009025806335},
  };
  for (const Row& row : rows) {
    ChrfOptions options;
    options.lowercase = row.lowercase;
    options.word_order = row.word_order;
    options.whitespace = row.whitespace;
    EXPECT_NEAR(corpus_chrf(hypotheses, references, options), row.score, 1e-9)
        << row.lowercase << row.word_order << row.whitespace;
  }
}

TEST(Bleu, SeveralReferencesAndShortLines) {
  EXPECT_EQ(corpus_bleu({"ab cd"}, {"xx yy"}).score, 0.0);
  EXPECT_NEAR(corpus_bleu({"the cat is"}, {"the cat sat on"}).score, 0.0, 1e-9);
  const BleuCounts counts =
      bleu_counts("the cat is on a mat", {"the cat sat on the mat", "a cat is on the mat now"}, {});
  EXPECT_NEAR(bleu_from_counts(counts, {}).score, 39.76353643835254, 1e-9);
  EXPECT_THROW(corpus_bleu({"a", "b"}, {"a"}), Error);
}

TEST(Bleu, EntitiesTakeLinearTime) {
  std::string line;
  for (int i = 0; i < 400'000; ++i) line += "&quot;";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenize(BleuTokenizer::v13a, line).size(), 400'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Bleu, Signature) {
  EXPECT_EQ(bleu_signature({}, 1),
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:nmt-" NMT_VERSION);
}

}  // namespace
}  // namespace nmt
