#include "search/line_writer.h"

#include "core/error.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace nmt {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LineWriterTest : public testing::Test {
 protected:
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "line_writer_test";
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
};

TEST_F(LineWriterTest, AFileTakesItsNameWhenWhole) {
  const std::string path = folder / "out";
  std::ofstream(path) << "old\n";
  {
    LineWriter writer(path);
    writer.write("new");
    writer.write("er\n");
    writer.flush();
    EXPECT_EQ(contents(path), "old\n");
    writer.commit();
    EXPECT_EQ(contents(path), "newer\n");
  }
  EXPECT_EQ(contents(path), "newer\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder),
                          std::filesystem::directory_iterator()),
            1);
}

TEST_F(LineWriterTest, WhatIsNotCommittedLeavesNoTrace) {
  const std::string path = folder / "out";
  {
    LineWriter writer(path);
    writer.write(std::string(200000, 'x'));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(LineWriterTest, ALinkStaysALink) {
  std::ofstream(folder / "target") << "old";
  std::filesystem::create_symlink("target", folder / "link");
  LineWriter writer(folder / "link");
  writer.write("new");
  writer.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(contents(folder / "target"), "new");
}

TEST_F(LineWriterTest, SaysWhatIsWrong) {
  EXPECT_THROW(LineWriter(folder.string()), Error);
  EXPECT_THROW(LineWriter((folder / "none" / "out").string()), Error);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  LineWriter writer("/dev/full");
  writer.write("x");
  try {
    writer.commit();
    FAIL() << "expected an error: the device is full";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/dev/full: cannot be written: No space left on device");
    EXPECT_EQ(error.status(), ExitStatus::failed);
  }
}

}  // namespace
}  // namespace nmt
