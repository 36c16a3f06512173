#include "nmt/core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "nmt/core/error.h"

namespace nmt {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() : root_(fs::temp_directory_path() / fmt::format("nmt-file-test-{}", ::getpid())) { fs::create_directories(root_); }
  ~FileTest() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  std::size_t entries() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator())); }
  fs::path root_;
};

TEST_F(FileTest, WritesAndReads) {
  write_file(at("a"), "one");
  write_file(at("a"), std::string("t\0o\n", 4));
  EXPECT_EQ(read_file(at("a")), std::string("t\0o\n", 4));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ReadErrorsNameTheFile) {
  const auto message = [&](const std::string& path, std::int64_t most) {
    try {
      read_file(path, most);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(at("none"), 10), at("none") + ": cannot be read: No such file or directory");
  EXPECT_EQ(message(root_.string(), 10), root_.string() + ": is a folder, not a file");
  write_file(at("long"), "12345678901");
  EXPECT_EQ(message(at("long"), 10), at("long") + ": is larger than 10 bytes");
}

TEST_F(FileTest, WhatIsNotCommittedIsGone) {
  write_file(at("a"), "old");
  {
    AtomicFile file(at("a"));
    file.write("half");
  }
  EXPECT_EQ(read_file(at("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

// No room: the file system's answer is imitated by the limit on a file's size, which fails the write the same way.
TEST_F(FileTest, AFullDiskKeepsTheOldFileAndNamesTheBytesNeeded) {
  write_file(at("a"), "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(at("a"), std::string(5000, 'x'));
    } catch (const Error& error) {
      ::_exit(error.what() == at("a") + ": cannot be written, 5000 bytes needed: File too large" ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(at("a")), "old");
  EXPECT_EQ(entries(), 1u);
  EXPECT_THROW(AtomicFile(at("b"), std::int64_t{1} << 60), Error);  // more than any disk has
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, FoldersAppearWhole) {
  write_directory(at("d"), [](const std::string& aside) {
    EXPECT_TRUE(is_aside(fs::path(aside).filename().string()));
    write_file(aside + "/x", "1");
  });
  EXPECT_EQ(read_file(at("d/x")), "1");
  EXPECT_THROW(write_directory(at("d"), [](const std::string&) {}), Error);
  EXPECT_THROW(write_directory(at("e"), [](const std::string&) { fail(ExitStatus::failed, "no"); }), Error);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, LeftoversAreRemoved) {
  make_directories(at(".tmp-5-77/x"));
  write_file(at(".tmp-a-1"), "x");
  write_file(at("kept"), "x");
  remove_asides(root_.string());
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace nmt
