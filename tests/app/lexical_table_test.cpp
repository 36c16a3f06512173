#include "app/distill/lexical_table.h"

#include "search/line_writer.h"
#include "text/vocabulary/word_vocabulary.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt::app {
namespace {

// In a shortlist, the source NULL stands for the frequencies of targets.
TEST(LexicalTable, APieceThatIsSpelledNullHasNoRows) {
  const Vocabulary source = word_vocabulary({"NULL", "dog"}),
                   target = word_vocabulary({"0", "Hund"});
  const auto ids = [](const Vocabulary& vocabulary, const char* text) {
    return vocabulary.encode(text);
  };
  LexicalTable table(source, target);
  const std::vector<AlignmentPoint> links{{0, 0}, {1, 1}};
  table.add(ids(source, "NULL dog"), ids(target, "0 Hund"), links);
  const std::string path = testing::TempDir() + "nmt_lexical_table_" + std::to_string(::getpid());
  LineWriter writer(path);
  EXPECT_EQ(table.write(writer, 10), 1);
  writer.commit();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "0 NULL 0.5\nHund NULL 0.5\nHund dog 1\n");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace nmt::app
