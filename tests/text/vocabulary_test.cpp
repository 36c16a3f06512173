#include "nmt/vocabulary.h"

#include "core/error.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <clocale>
#include <ctime>
#include <locale>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

namespace nmt {
namespace {

std::vector<std::string> corpus() {
  const std::vector<std::string> subjects{"the small dog", "a woman", "the old house", "my brother",
                                          "every child"};
  const std::vector<std::string> verbs{"sees", "likes", "paints", "follows", "remembers"};
  const std::vector<std::string> objects{"the river", "an apple", "the müller's cat", "some bread",
                                         "the lamp"};
  std::vector<std::string> lines;
  for (const auto& s : subjects)
    for (const auto& v : verbs)
      for (const auto& o : objects) lines.push_back(s + " " + v + " " + o + ".");
  return lines;
}

TrainedVocabulary train(const std::vector<std::string>& lines, VocabularyTraining training) {
  return train_vocabulary(
      static_cast<std::int64_t>(lines.size()),
      [&](std::int64_t i) { return std::string_view(lines[static_cast<std::size_t>(i)]); },
      training, "test");
}

TEST(Vocabulary, RoundTripOfEveryLine) {
  const auto lines = corpus();
  const auto trained = train(lines, {.size = 80});
  EXPECT_EQ(trained.vocabulary.size(), 80);
  EXPECT_EQ(trained.lines_used, 125);
  for (const auto& line : lines) {
    const auto ids = trained.vocabulary.encode(line);
    EXPECT_EQ(trained.vocabulary.decode(ids), line);
    std::string joined;
    for (const auto id : ids) {
      EXPECT_GT(id, 2);
      joined += trained.vocabulary.piece(id);
    }
    std::string expected = "\xe2\x96\x81";
    for (const char c : line)
      expected += c == ' ' ? std::string("\xe2\x96\x81") : std::string(1, c);
    EXPECT_EQ(joined, expected);
    EXPECT_TRUE(trained.vocabulary.starts_word(ids.front()));
  }
}

TEST(Vocabulary, SpecialPieces) {
  const auto trained = train(corpus(), {.size = 60});
  const Vocabulary& v = trained.vocabulary;
  EXPECT_EQ(v.piece(v.unk()), "<unk>");
  EXPECT_EQ(v.piece(v.bos()), "<s>");
  EXPECT_EQ(v.piece(v.eos()), "</s>");
  auto ids = v.encode("the dog");
  ids.insert(ids.begin(), v.bos());
  ids.push_back(v.eos());
  EXPECT_EQ(v.decode(ids), "the dog");
  EXPECT_EQ(v.encode("\xe6\xbc\xa2").back(), v.unk());
  // Text that looks like a control symbol is encoded as text.
  for (const auto id : v.encode("</s> <s>")) EXPECT_TRUE(id != v.bos() && id != v.eos());
  EXPECT_TRUE(v.encode("").empty());
  EXPECT_TRUE(v.encode(" \t ").empty());
  EXPECT_THROW(v.decode(std::vector<std::int32_t>{60}), Error);
  EXPECT_THROW(v.piece(-1), Error);
}

// BPE pieces never span a space, so the encoding of a line is the concatenation of its words'
// encodings, in long lines and lines with unknown words too.
TEST(Vocabulary, LongLinesAreTheConcatenationOfTheirWords) {
  const Vocabulary v = train(corpus(), {.size = 80}).vocabulary;
  std::mt19937 random(3);
  std::string line;
  std::vector<std::int32_t> expected;
  while (line.size() < 60'000) {
    std::string word;
    for (unsigned k = random() % 3; k > 0; --k)
      word += std::vector<std::string>{"the", "\xe6\xbc\xa2", "dog"}[random() % 3];
    const auto ids = v.encode(word);
    expected.insert(expected.end(), ids.begin(), ids.end());
    line += word + (random() % 4 ? " " : "\xe3\x80\x80");  // U+3000 is also a space
  }
  auto ids = v.encode(line);
  for (auto* all : {&ids, &expected})  // a run of unknown characters may give several <unk>
    all->erase(
        std::unique(all->begin(), all->end(), [](auto a, auto b) { return a == 0 && b == 0; }),
        all->end());
  EXPECT_EQ(ids, expected);
}

// What is cut for speed has the pieces of SentencePiece, but for further <unk>.
TEST(Vocabulary, CutsDoNotChangeKnownPieces) {
  auto lines = corpus();
  for (int i = 0; i < 20; ++i) lines.push_back("\xea\xb0\x80 \xe3\x82\xac");
  const Vocabulary v = train(lines, {.size = 80}).vocabulary;
  const auto without_unknown = [&](std::vector<std::int32_t> ids) {
    std::erase(ids, v.unk());
    return ids;
  };
  for (const std::string& unit :
       {std::string("e\xe2\x83\x97"), std::string("\xe2\x83\x97\xe2\x83\x97 "),
        std::string("the\xe2\x83\x97 "), std::string("\xe3\x84\xb1\xe3\x85\x8f"),
        std::string("\xef\xbd\xb6\xef\xbe\x9e"), std::string("e\xcc\x81"),
        std::string("\xe4\xb8\x80\xc2\xb4"), std::string("\xe4\xb8\x80\xe2\x80\xbe"),
        std::string("\x01\xe4\xb8\x80")}) {
    std::string line;
    while (line.size() < 20'000) line += unit;
    sentencepiece::SentencePieceProcessor processor;
    ASSERT_TRUE(processor.LoadFromSerializedProto(v.bytes()).ok());
    std::vector<int> expected;
    ASSERT_TRUE(processor.Encode(line, &expected).ok());
    EXPECT_EQ(without_unknown(v.encode(line)), without_unknown(expected)) << unit;
  }
}

TEST(Vocabulary, MillionBytesOfNoTextAreQuick) {
  const Vocabulary v = train(corpus(), {.size = 80}).vocabulary;
  std::string ideographs;
  while (ideographs.size() < 1'000'000) ideographs += "\xe6\xbc\xa2";
  std::string marked;  // letters of the vocabulary, which compose to unknown ones
  while (marked.size() < 1'000'000) marked += "e\xcc\x81";
  std::string controls;  // which normalization removes
  while (controls.size() < 1'000'000) controls += "\x01\xe6\xbc\xa2";
  for (const std::string& run : {std::string(1'000'000, '\0'), ideographs, marked, controls}) {
    const std::clock_t start = std::clock();  // CPU time, which other processes do not affect
    const auto ids = v.encode("the" + run + "dog");
    EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
    auto expected = v.encode("the");
    expected.push_back(v.unk());
    auto shortened = ids;
    shortened.erase(std::unique(shortened.begin(), shortened.end(),
                                [](auto a, auto b) { return a == 0 && b == 0; }),
                    shortened.end());
    ASSERT_GT(shortened.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), shortened.begin()));
    EXPECT_EQ(v.decode(shortened), "the \xe2\x81\x87 dog");
  }
}

TEST(Vocabulary, SizeIsClampedBothWays) {
  const auto lines = corpus();
  const auto large = train(lines, {.size = 30000});
  EXPECT_LT(large.vocabulary.size(), 1000);
  EXPECT_GT(large.vocabulary.size(), 80);
  const auto tiny = train(lines, {.size = 5});
  EXPECT_GT(tiny.vocabulary.size(), 25);  // letters and ids 0 to 2
  EXPECT_LT(tiny.vocabulary.size(), 40);
  EXPECT_EQ(tiny.vocabulary.decode(tiny.vocabulary.encode(lines[7])), lines[7]);
  EXPECT_EQ(train({"a"}, {.size = 100}).vocabulary.decode(std::vector<std::int32_t>{}), "");
}

TEST(Vocabulary, SameLinesSameBytes) {
  const auto lines = corpus();
  EXPECT_EQ(train(lines, {.size = 120}).vocabulary.bytes(),
            train(lines, {.size = 120}).vocabulary.bytes());
}

// The program of a user may have a locale with another decimal point.
TEST(Vocabulary, TheLocaleChangesNothing) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const auto lines = corpus();
  const std::string expected = train(lines, {.size = 120}).vocabulary.bytes();
  const std::locale comma(std::locale::classic(), new Comma);
  const std::string of_c = std::setlocale(LC_ALL, nullptr);
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  const std::string utf8 = std::setlocale(LC_ALL, nullptr);
  EXPECT_EQ(train(lines, {.size = 120}).vocabulary.bytes(), expected);
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), utf8);
  const std::locale before = std::locale::global(comma);
  std::string bytes;
  EXPECT_NO_THROW(bytes = train(lines, {.size = 120}).vocabulary.bytes());
  EXPECT_EQ(std::locale(), comma);
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), utf8);
  std::locale::global(before);
  std::setlocale(LC_ALL, of_c.c_str());
  EXPECT_EQ(bytes, expected);
}

TEST(Vocabulary, SamplesEvenlyAndPassesOverLongLines) {
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i) lines.push_back("line " + std::to_string(i));
  lines[50] = std::string(10000, 'x');
  std::vector<std::int64_t> asked;
  const auto trained = train_vocabulary(
      100,
      [&](std::int64_t i) {
        asked.push_back(i);
        return std::string_view(lines[static_cast<std::size_t>(i)]);
      },
      {.size = 20, .max_lines = 10}, "test");
  EXPECT_EQ(std::vector<std::int64_t>(asked.begin(), asked.begin() + 10),
            (std::vector<std::int64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
  EXPECT_EQ(trained.lines_used, 9);
  EXPECT_EQ(trained.lines_too_long, 1);
  try {
    train({std::string(10000, 'x'), "", std::string(5000, 'y')}, {.size = 20});
    FAIL() << "expected an error: no text";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "test: no text to train a vocabulary on in 3 lines; 2 lines over 4096 bytes were "
                 "skipped");
  }
}

TEST(Vocabulary, LargeAlphabetIsCoveredInPart) {
  std::vector<std::string> lines(4000, "the common letters of a text");
  for (int i = 0; i < 600; ++i) {  // 600 distinct ideographs, once each
    const int point = 0x4E00 + i;
    lines[static_cast<std::size_t>(i)] +=
        {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 63)),
         static_cast<char>(0x80 | (point & 63))};
  }
  const auto trained = train(lines, {.size = 400});
  EXPECT_EQ(trained.character_coverage, 0.9995);
  EXPECT_EQ(train(corpus(), {.size = 100}).character_coverage, 1.0);
}

TEST(Vocabulary, RefusesWhatIsNoModel) {
  const auto refused = [](const std::string& bytes) {
    try {
      Vocabulary::from_bytes(bytes, "foreign.spm");
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      EXPECT_NE(std::string(error.what()).find("foreign.spm"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return true;
    }
    return false;
  };
  const std::string good = train(corpus(), {.size = 60}).vocabulary.bytes();
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("not a model at all"));
  EXPECT_TRUE(refused(std::string(1000, '\0')));
  for (const std::size_t size : {std::size_t{10}, good.size() / 2, good.size() - 1})
    EXPECT_TRUE(refused(good.substr(0, size)));
  EXPECT_THROW(Vocabulary::load("/nonexistent/x.spm"), Error);
  EXPECT_THROW(Vocabulary::load("/tmp"), Error);
  // Unicode spaces, and a line with U+2585, which SentencePiece reserves.
  for (const std::string& line :
       {std::string("  "), std::string("\xe2\x80\x8b\xc2\xa0"), std::string("a\xe2\x96\x85")}) {
    try {
      train({"", line}, {.size = 100});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data) << error.what();
    }
  }
  EXPECT_THROW(train({"a b"}, {.size = 3}), Error);
}

// The root of the normalization trie points out of bounds.
TEST(Vocabulary, RejectsOutOfBoundsTable) {
  std::string model = train(corpus(), {.size = 60}).vocabulary.bytes();
  const std::size_t name = model.find("nmt_nfkc");
  ASSERT_NE(name, std::string::npos);
  const std::size_t root =
      name + 8 + 1 + 3 + 4;  // after the tag and length of the field and the size of the trie
  EXPECT_NO_THROW(Vocabulary::from_bytes(model, "as it was"));
  for (const char last :
       {'\x7F', '\xFF'}) {  // also where the bits would mark a value in other nodes
    model.replace(root, 4, std::string("\x00\x00\xF0", 3) + last);
    EXPECT_THROW(Vocabulary::from_bytes(model, "hostile"), Error);
  }
}

/// Appends a field with bytes (wire type 2) to a protocol buffer message.
std::string with_field(std::string message, int number, const std::string& bytes) {
  message += static_cast<char>(number << 3 | 2);
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) message += static_cast<char>(0x80 | (size & 0x7F));
  message += static_cast<char>(size);
  return message + bytes;
}

std::string error_of(const std::string& model) {
  try {
    Vocabulary::from_bytes(model, "hostile.spm");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    return error.what();
  }
  return "";
}

// SentencePiece 0.1.97 overflows the stack when it loads a unigram model with such a piece.
TEST(Vocabulary, RejectsLongPieces) {
  const std::string good = train(corpus(), {.size = 60}).vocabulary.bytes();
  const auto with_piece = [&](std::size_t size) {
    return with_field(good, 1, with_field("", 1, std::string(size, 'x')));
  };
  EXPECT_EQ(error_of(with_piece(4096)), "");
  EXPECT_EQ(error_of(with_piece(4097)),
            "vocabulary hostile.spm: piece 60 has 4097 bytes; at most 4096 are allowed");
  // Field 2 is the trainer's settings, their field 3 the model type: 1 is unigram.
  const std::string unigram = with_field(with_piece(300000), 2, std::string("\x18\x01", 2));
  EXPECT_NE(error_of(unigram).find("piece 60 has 300000 bytes"), std::string::npos);
}

// SentencePiece 0.1.97 throws where it must not when a piece begins with a NUL byte.
TEST(Vocabulary, RejectsPiecesWithNul) {
  const std::string good = train(corpus(), {.size = 60}).vocabulary.bytes();
  EXPECT_EQ(error_of(with_field(good, 1, with_field("", 1, std::string(4, '\0')))),
            "vocabulary hostile.spm: piece 60 begins with a NUL byte");
}

TEST(Vocabulary, RejectsManyPiecesAndLargeFiles) {
  std::string pieces;
  for (int i = 0; i <= 1'000'000; ++i) pieces += std::string("\x0A\x03\x0A\x01x", 5);
  EXPECT_EQ(error_of(pieces), "vocabulary hostile.spm: more than 1000000 pieces");
  EXPECT_EQ(error_of(std::string((64 << 20) + 1, '\x0A')),
            "vocabulary hostile.spm: larger than 64 MiB");
  EXPECT_THROW(Vocabulary::load("/dev/zero"), Error);
}

// SentencePiece encodes the samples when it loads the model.
TEST(Vocabulary, RejectsLongSelfTests) {
  const std::string good = train(corpus(), {.size = 60}).vocabulary.bytes();
  const std::string sample = with_field("", 1, with_field("", 1, std::string(1 << 20, '\x01')));
  EXPECT_EQ(error_of(with_field(good, 4, sample)),
            "vocabulary hostile.spm: more than 64 KiB of self-test samples");
}

TEST(Vocabulary, IsNotSavedToStandardOutput) {
  const Vocabulary vocabulary = train(corpus(), {.size = 60}).vocabulary;
  testing::internal::CaptureStdout();
  for (const char* const path : {"", "-"}) {
    try {
      vocabulary.save(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_EQ(error.what(),
                "vocabulary: save to '" + std::string(path) + "'; expected the name of a file");
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

// Some corrupt files still load, with other pieces. None may crash the process.
TEST(Vocabulary, CorruptBytesAreRejectedOrHarmless) {
  const std::string good = train(corpus(), {.size = 60}).vocabulary.bytes();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string changed = good;
    for (unsigned k = random() % 4 + 1; k > 0; --k) {
      // Pieces and settings come first, then the trie, then the replacements.
      const std::size_t at = random() % 2 ? random() % changed.size() : random() % 3000;
      if (random() % 3 == 0)
        changed.erase(at, 1 + random() % 8);
      else
        changed[at] = static_cast<char>(random());
    }
    try {
      const Vocabulary vocabulary = Vocabulary::from_bytes(changed, "changed");
      const auto ids = vocabulary.encode(
          "the m\xC3\xBCller's \xC2\xBD \xEF\xAC\x81 \xE6\xBC\xA2 \xEF\xBC\xA1 dog");
      vocabulary.decode(ids);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 1000);
}

}  // namespace
}  // namespace nmt
