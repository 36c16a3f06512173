#include "search/beam/shortlist.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/hash/checksum.h"
#include "core/rng.h"
#include "model/decoding/model_scorer.h"
#include "search/beam/beam_search.h"
#include "small_vocabulary.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

using Ids = std::vector<std::int32_t>;

struct ShortlistTest : testing::Test {
  ShortlistTest()
      : path(testing::TempDir() + "nmt_shortlist_" + std::to_string(::getpid())),
        vocabulary(small_vocabulary()) {}
  ~ShortlistTest() override { std::filesystem::remove(path); }
  std::string piece(std::int32_t id) const { return vocabulary.piece(id); }
  Shortlist load(const std::string& text, int first, int best, double prune = 0) {
    write_file(path, text);
    return Shortlist::load({path, first, best, prune}, vocabulary, vocabulary);
  }
  std::string path;
  const Vocabulary& vocabulary;
};

TEST_F(ShortlistTest, TakesTheMostFrequentAndTheLikeliest) {
  // Unsorted; the tie between 20 and 21 goes to the lower id.
  const std::string text = piece(10) + " NULL 0.1\n" + piece(11) + " NULL 0.5\n" + piece(12) +
                           "\tNULL  0.2\n" + piece(21) + " " + piece(30) + " 0.25\n" + piece(20) +
                           " " + piece(30) + " 0.25\n" + piece(22) + " " + piece(30) + " 0.5\n" +
                           piece(11) + " " + piece(31) + " 1e-3\n";
  EXPECT_EQ(load(text, 2, 2).candidates(Ids{30}), (Ids{2, 11, 12, 20, 22}));
  EXPECT_EQ(load(text, 2, 1).candidates(Ids{30, 31, 30}), (Ids{2, 11, 12, 22}));
  EXPECT_EQ(load(text, 0, 9).candidates(Ids{31, 30}), (Ids{2, 11, 20, 21, 22}));
  EXPECT_EQ(load(text, 0, 9, 0.3).candidates(Ids{31, 30}), (Ids{2, 22}));
  EXPECT_EQ(load(text, 0, 9).candidates(Ids{}), (Ids{2}));
  EXPECT_EQ(load(text, 0, 2).size(), 3);
  EXPECT_EQ(load(text + text, 2, 2).candidates(Ids{30}), (Ids{2, 11, 12, 20, 22}));
  // Without frequencies: the first pieces of the vocabulary.
  EXPECT_EQ(load(piece(20) + " " + piece(30) + " 0.25\n", 2, 2).candidates(Ids{30}),
            (Ids{2, 3, 20}));
}

TEST_F(ShortlistTest, TheStoredFormIsTheSame) {
  const std::string text = piece(10) + " NULL 0.1\n" + piece(11) + " NULL 0.5\n" + piece(21) + " " +
                           piece(30) + " 0.25\n" + piece(22) + " " + piece(30) + " 0.5\n" +
                           piece(11) + " " + piece(31) + " 1e-3\n";
  const Shortlist list = load(text, 2, 2);
  const std::string bytes = list.bytes(vocabulary, vocabulary);
  const Shortlist again = Shortlist::from_bytes(bytes, "list", vocabulary, vocabulary);
  EXPECT_EQ(again.size(), 3);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id)
    EXPECT_EQ(again.candidates(Ids{id}), list.candidates(Ids{id}));
  EXPECT_EQ(again.bytes(vocabulary, vocabulary), bytes);

  const Vocabulary other = Vocabulary::train({"a vocabulary of another model", "has other pieces"});
  const auto message = [&](const std::string& stored, const Vocabulary& of) {
    try {
      Shortlist::from_bytes(stored, "list", of, of);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message(bytes, other), "list: the shortlist is of other vocabularies");
  EXPECT_EQ(message("", vocabulary),
            "list: is not a whole stored shortlist: its header is missing");
  EXPECT_EQ(message(bytes.substr(0, bytes.size() - 4), vocabulary),
            "list: is not a whole stored shortlist: its checksum is wrong");
}

// As an attacker would change them: with a checksum that is right.
TEST_F(ShortlistTest, ChangedBytesAreRefusedOrHarmless) {
  std::string text;
  for (std::int32_t id = 3; id < vocabulary.size(); ++id)
    text += piece(id) + " " + piece(vocabulary.size() + 2 - id) + " 0.5\n";
  const std::string sound = load(text, 3, 2).bytes(vocabulary, vocabulary);
  Rng rng(3);
  int refused = 0, accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = sound.substr(0, sound.size() - 4);
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    if (rng.below(4) == 0) bytes.resize(rng.below(bytes.size() + 1));
    const std::uint32_t sum = crc32(bytes);
    bytes.append(reinterpret_cast<const char*>(&sum), 4);
    try {
      const Shortlist list = Shortlist::from_bytes(bytes, "list", vocabulary, vocabulary);
      for (std::int32_t id = 0; id < vocabulary.size(); id += 7)
        for (const std::int32_t candidate : list.candidates(Ids{id}))
          ASSERT_TRUE(candidate >= 0 && candidate < vocabulary.size());
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 10);
}

// Search with a shortlist and a real model: scores are a log softmax over the candidates' logits,
// here computed in double from the full output layer.
TEST_F(ShortlistTest, ScoresAreNormalizedOverTheCandidates) {
  ModelSpec spec;
  spec.enc_cell = spec.dec_cell = "gru";
  spec.dim_emb = 12;
  spec.dim_rnn = 20;
  spec.enc_depth = spec.dec_depth = 1;
  for (const Dtype weights : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
    test::Engine engine(2);
    engine.context.weights = weights;
    Model model(spec, 40, 37, engine.context, 5);
    model.freeze();
    ModelScorer scorer(model, 1, 2);
    const std::vector<Ids> sources{{5, 6, 7}, {8}};
    const Candidates candidates{{2, 4, 9, 36}, {2, 3, 4, 5, 6, 7, 20}};
    const auto whole = scorer.begin(sources, false), part = scorer.begin(sources, false);
    part->restrict_to(candidates);
    const Ids parents{1, 0, 1}, tokens{1, 1, 1};
    whole->advance(parents, tokens);
    part->advance(parents, tokens);
    const NextTokens all = whole->score(0, 3), some = part->score(0, 3);
    ASSERT_EQ(some.vocabulary, 7);
    for (int row = 0; row < 3; ++row) {
      const Ids& own = candidates[static_cast<std::size_t>(parents[static_cast<std::size_t>(row)])];
      double sum = 0;
      for (std::size_t j = 0; j < 7; ++j) {
        const float logit = some.logits[row * 7 + static_cast<int>(j)];
        if (j < own.size()) {
          EXPECT_EQ(logit, all.logits[row * 37 + own[j]]);
          sum += std::exp(double{logit});
        } else {
          EXPECT_EQ(logit, -INFINITY);
        }
      }
      EXPECT_NEAR(some.log_normalizer[row], std::log(sum), 2e-6);
    }
  }
}

}  // namespace
}  // namespace nmt
