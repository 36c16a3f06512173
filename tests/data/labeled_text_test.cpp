#include "data/labeled_text.h"

#include "core/error.h"
#include "tests/data/error_of.h"
#include "tests/data/temporary_files.h"

#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(LabeledText, ReadsTextsAndPairs) {
  const TemporaryFiles files;
  const LabeledTexts texts =
      read_labeled_text(files.write("texts", "games\ta game\r\n\nlibs\ta library"));
  EXPECT_FALSE(texts.has_pairs);
  ASSERT_EQ(texts.examples.size(), 2u);
  EXPECT_EQ(texts.examples[0].label, "games");
  EXPECT_EQ(texts.examples[0].text, "a game");
  EXPECT_EQ(texts.examples[1].line, 3);
  const LabeledTexts pairs = read_labeled_text(files.write("pairs", "yes\ta\tb c\n"));
  EXPECT_TRUE(pairs.has_pairs);
  EXPECT_EQ(pairs.examples[0].second, "b c");
}

TEST(LabeledText, BadFilesGiveOneLineWithTheirPlace) {
  const TemporaryFiles files;
  const auto refused = [&](const std::string& text, const std::string& part) {
    const auto [status, message] = error_of([&] { read_labeled_text(files.write("bad", text)); });
    EXPECT_EQ(status, ExitStatus::data) << text;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refused("", "no labeled texts");
  refused("a text\n", "line 1 has 1 field, not 2 or 3");
  refused("l\ta\tb\tc\n", "line 1 has 4 fields, not 2 or 3");
  refused("l\ta\nl\ta\tb\n", "line 2 has 3 fields, not 2");
  refused("l\ta\tb\n\nl\ta\n", "line 3 has 2 fields, not 3");
  refused("\ta\n", "line 1: the label is empty");
  refused("l\t \n", "line 1: the text is empty");
}

}  // namespace
}  // namespace nmt
