#include "search/beam/lexical_table.h"

#include "search/line_writer.h"
#include "text/vocabulary/train_vocabulary.h"
#include "text/vocabulary/word_vocabulary.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

// In a shortlist, the source NULL stands for the frequencies of targets.
TEST(LexicalTable, APieceThatIsSpelledNullHasNoRows) {
  const std::vector<std::string> lines{"aNULL bNULL cNULL dNULL eNULL"};
  const Vocabulary source =
      train_vocabulary(
          1, [&](std::int64_t) { return std::string_view(lines[0]); }, {.size = 15}, "test")
          .vocabulary;
  const Vocabulary target = word_vocabulary({"0", "Hund"});
  std::int32_t null = 0, other = 0;
  for (std::int32_t id = 3; id < source.size(); ++id)
    (source.piece(id) == "NULL" ? null : other) = id;
  ASSERT_GT(null, 0);
  LexicalTable table(source, target);
  const std::vector<std::int32_t> from{null, other}, to = target.encode("0 Hund");
  const std::vector<AlignmentPoint> links{{0, 0}, {1, 1}};
  table.add(from, to, links);
  const std::string path = testing::TempDir() + "nmt_lexical_table_" + std::to_string(::getpid());
  LineWriter writer(path);
  EXPECT_EQ(table.write(writer, 10), 1);
  writer.commit();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, fmt::format("{0} NULL 0.5\n{1} NULL 0.5\n{1} {2} 1\n", target.piece(to[0]),
                              target.piece(to[1]), source.piece(other)));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace nmt
