#include "nmt/search/descriptor_lines.h"

#include "nmt/core/error.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {
namespace {

class DescriptorLinesTest : public testing::Test {
 protected:
  std::string path = testing::TempDir() + "/descriptor_lines_test";
  void SetUp() override { std::filesystem::remove_all(path); }
  void TearDown() override { std::filesystem::remove_all(path); }
  std::vector<std::string> lines_of(const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
    DescriptorLines lines(path);
    EXPECT_TRUE(lines.regular());
    EXPECT_EQ(lines.size(), static_cast<std::int64_t>(contents.size()));
    std::vector<std::string> result;
    for (std::string line; lines.next(line);) result.push_back(line);
    EXPECT_EQ(lines.position(), lines.size());
    return result;
  }
};

TEST_F(DescriptorLinesTest, only_line_feeds_end_lines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n\n"), (Lines{"", ""}));
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\rb\u2028c\u0085\nd"), (Lines{"a\rb\u2028c\u0085", "d"}));
  EXPECT_EQ(lines_of(std::string("a\0b\n", 4)), (Lines{std::string("a\0b", 3)}));
  const std::string million(1000000, 'x');
  EXPECT_EQ(lines_of(million + "\nend\n" + million), (Lines{million, "end", million}));
}

TEST_F(DescriptorLinesTest, a_pipe_is_ready_when_a_whole_line_is_there) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int writing = ::open(path.c_str(), O_RDWR);  // does not wait for a reader
  ASSERT_GE(writing, 0);
  DescriptorLines lines(path);
  EXPECT_FALSE(lines.regular());
  EXPECT_FALSE(lines.ready());
  ASSERT_EQ(::write(writing, "one\ntw", 6), 6);
  std::string line;
  EXPECT_TRUE(lines.ready());
  EXPECT_TRUE(lines.ready());
  EXPECT_TRUE(lines.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_FALSE(lines.ready());
  ASSERT_EQ(::write(writing, "o\n\nrest", 7), 7);
  EXPECT_TRUE(lines.ready());
  EXPECT_TRUE(lines.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_TRUE(lines.ready());
  EXPECT_TRUE(lines.next(line));
  EXPECT_EQ(line, "");
  EXPECT_FALSE(lines.ready());
  ::close(writing);
  EXPECT_TRUE(lines.ready());
  EXPECT_TRUE(lines.next(line));
  EXPECT_EQ(line, "rest");
  EXPECT_TRUE(lines.ready());
  EXPECT_FALSE(lines.next(line));
}

TEST_F(DescriptorLinesTest, says_what_cannot_be_read) {
  const auto message = [](const std::string& name) -> std::string {
    try {
      DescriptorLines lines(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(path), path + ": cannot be read: No such file or directory");
  std::filesystem::create_directory(path);
  EXPECT_EQ(message(path), path + ": cannot be read: Is a directory");
}

}  // namespace
}  // namespace nmt
