#include "data/columns.h"

#include "core/error.h"
#include "tests/data/error_of.h"
#include "tests/data/temporary_files.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Words = std::vector<std::string>;

constexpr const char* conllu =
    "\xEF\xBB\xBF# sent_id = 1\r\n# text = Don't go\tnow\r\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\r\n"
    "1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_\r\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\r\n"
    "2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_\r\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\r\n"
    "\r\n\r\n"
    "# only a comment\n\n"
    "1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_\n"
    "2\t10 000\t10000\tNUM\tCD\t_\t1\tnummod\t_\t_";

TEST(Columns, ConlluHasWordsInColumnTwoAndTagsInColumnFour) {
  const TemporaryFiles files;
  const ColumnFile file = read_columns(files.write("a.conllu", conllu));
  EXPECT_TRUE(file.is_conllu);
  EXPECT_EQ(file.words, 5);
  ASSERT_EQ(file.sentences.size(), 2u);
  EXPECT_EQ(file.sentences[0].words, (Words{"Do", "n't", "go"}));
  EXPECT_EQ(file.sentences[0].tags, (Words{"AUX", "PART", "VERB"}));
  EXPECT_EQ(file.sentences[0].line, 4);
  EXPECT_EQ(file.sentences[1].words, (Words{"#", "10 000"}));
  EXPECT_EQ(file.sentences[1].tags, (Words{"SYM", "NUM"}));
  const ColumnFile other = read_columns(files.write("b.conllu", conllu), {3, 5});
  EXPECT_EQ(other.sentences[0].words, (Words{"do", "not", "go"}));
  EXPECT_EQ(other.sentences[0].tags, (Words{"VB", "RB", "VB"}));
}

TEST(Columns, OtherFilesHaveTheirTagsInTheLastColumn) {
  const TemporaryFiles files;
  const ColumnFile file = read_columns(files.write(
      "ner", "-DOCSTART- -X- O O\n\nEU NNP  I-NP I-ORG\nrejects VBZ I-VP O\n\n# NN I-NP O\n"));
  EXPECT_FALSE(file.is_conllu);
  ASSERT_EQ(file.sentences.size(), 2u);
  EXPECT_EQ(file.sentences[0].words, (Words{"EU", "rejects"}));
  EXPECT_EQ(file.sentences[0].tags, (Words{"I-ORG", "O"}));
  EXPECT_EQ(file.sentences[1].words, (Words{"#"}));
  EXPECT_EQ(file.columns.tag, 4);
  const ColumnFile third = read_columns(files.write("ner3", "EU NNP I-NP I-ORG\n"), {1, 3});
  EXPECT_EQ(third.sentences[0].tags, (Words{"I-NP"}));
}

TEST(Columns, TheFirstWordMayBeANumberSign) {
  const TemporaryFiles files;
  const ColumnFile file =
      read_columns(files.write("tags", "# text: # 1\n#\tSYM\n1\tNUM\n\n# text: go\ngo\tVERB\n"));
  ASSERT_EQ(file.sentences.size(), 2u);
  EXPECT_EQ(file.sentences[0].words, (Words{"#", "1"}));
  EXPECT_EQ(file.sentences[0].line, 2);
  EXPECT_EQ(file.sentences[1].words, (Words{"go"}));
}

// With spaces, a comment of two words is like a word and its tag.
TEST(Columns, ALineThatMayBeAWordOrACommentIsTold) {
  const TemporaryFiles files;
  const auto told = [&](const std::string& text, std::int64_t words) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(read_columns(files.write("spaces", text)).words, words);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told("# some text: go\n\n#MTV X\n# SYM\ngo VERB\n#1 X\n", 2),
            "warning: " + files.folder() +
                "/spaces: line 3 begins with # and has as many columns as the first word, in line "
                "5, but is read as a comment (such lines: 2); if it is a word, separate the "
                "columns by tabs\n");
  EXPECT_EQ(told("# some text: go\ngo VERB\n", 1), "");
  EXPECT_EQ(told("#\tSYM\ngo\tVERB\n", 2), "");
}

TEST(Columns, BadFilesGiveOneLineWithTheirPlace) {
  const TemporaryFiles files;
  const auto refused = [&](const std::string& text, const std::string& part,
                           const ColumnChoice& choice = {}) {
    const auto [status, message] =
        error_of([&] { read_columns(files.write("bad", text), choice); });
    EXPECT_EQ(status, ExitStatus::data) << text;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("bad"), std::string::npos) << message;
  };
  refused("", "no words");
  refused("# a comment\n\n", "no words");
  refused("a\tX\nb\tY\tZ\n", "line 2 has 3 columns, not 2 as line 1");
  refused("a\tX\n\nb\n", "line 3 has 1 columns, not 2 as line 1");
  refused("a\nb\n", "line 1 has one column", {});
  refused("a\tX\n", "line 1 has 2 columns, no column 3", {1, 3});
  refused("a\tX\nb\t\n", "line 2: column 2 is empty");
  refused("a\tX\n \tX\n", "line 2: column 1 is empty");
  refused("a\tX Y\n", "line 1: column 2 is a tag with a space");
  refused("a\tX\vY\n", "line 1: column 2 is a tag with a space");
  refused("a X\nb c\tY\n", "line 2: column 2 is a tag with a space");
  refused("a X" + std::string(5000, 'X') + "\n", "line 1: the tag has 5001 bytes");
  EXPECT_EQ(error_of([&] { read_columns(files.folder() + "/none"); }).first, ExitStatus::usage);
  EXPECT_EQ(error_of([&] { read_columns(files.folder()); }).first, ExitStatus::usage);
}

}  // namespace
}  // namespace nmt
