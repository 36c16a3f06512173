#include "core/files/file.h"

#include "core/error.h"
#include "core/log.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

// An empty directory, removed after the test.
struct Folder {
  Folder() : path(testing::TempDir() + "nmt_file_test_" + std::to_string(::getpid())) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  std::string path;
};

// Limits the file size (RLIMIT_FSIZE), which simulates a full disk.
struct SizeLimit {
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before); }
  rlimit before{};
};

std::string error_of(const std::function<void()>& body, ExitStatus status) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status);
    return error.what();
  }
  return "";
}

TEST(File, ReadsWhatWasWritten) {
  const Folder folder;
  std::string content(300000, 'x');
  content[7] = '\0';
  content[299999] = '\n';
  write_file(folder / "a", content);
  EXPECT_EQ(read_file(folder / "a"), content);
  write_file(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(File, MissingDirectoriesAndLargeFilesAreErrors) {
  const Folder folder;
  EXPECT_NE(error_of([&] { read_file(folder / "none"); }, ExitStatus::usage)
                .find("none: cannot be read: No such file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read_file(folder.path); }, ExitStatus::usage).find("is a directory"),
            std::string::npos);
  write_file(folder / "a", "12345");
  EXPECT_NE(
      error_of([&] { read_file(folder / "a", 4); }, ExitStatus::data).find("larger than 4 bytes"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { write_file(folder / "none/a", "x"); }, ExitStatus::usage),
            folder / "none/a" + ": cannot be written: No such file or directory");
}

TEST(File, FullDiskKeepsTheOldFileAndLeavesNoTemporary) {
  const Folder folder;
  write_file(folder / "a", "old");
  const std::string large(100000, 'x');
  {
    const SizeLimit limit(5000);
    const std::string message =
        error_of([&] { write_file(folder / "a", large); }, ExitStatus::failed);
    EXPECT_NE(message.find(folder / "a"), std::string::npos) << message;
    EXPECT_NE(message.find("100000 bytes needed"), std::string::npos) << message;
    EXPECT_NE(error_of(
                  [&] {
                    write_directory(folder / "d", [&](const std::string& directory) {
                      write_file(directory + "/a", large);
                    });
                  },
                  ExitStatus::failed),
              "");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1u);
  const auto more = free_bytes(folder.path) + (std::int64_t{1} << 40);
  EXPECT_NE(error_of([&] { AtomicFile(folder / "b", more); }, ExitStatus::failed)
                .find("not enough disk space"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(File, SymbolicLinksStayAndTheirTargetsAreReplaced) {
  const Folder folder;
  fs::create_directory(folder / "d");
  fs::create_symlink("d/target", folder / "link");  // to nothing yet
  fs::create_symlink("link", folder / "second");
  for (const std::string text : {"first", "later"}) {
    write_file(folder / "second", text);
    EXPECT_EQ(read_file(folder / "d/target"), text);
  }
  EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "second"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "d"), fs::directory_iterator()), 1);
  fs::create_symlink("round", folder / "round");
  EXPECT_NE(error_of([&] { write_file(folder / "round", "x"); }, ExitStatus::usage), "");
  EXPECT_TRUE(fs::is_symlink(folder / "round"));
}

TEST(File, AReplacedFileKeepsItsPermissions) {
  const Folder folder;
  write_file(folder / "private", "first");
  fs::permissions(folder / "private", fs::perms::owner_read | fs::perms::owner_write);
  write_file(folder / "private", "later");
  EXPECT_EQ(fs::status(folder / "private").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(File, PipesAndOpenFilesAreWrittenInPlace) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reading = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file(folder / "pipe", "through");
  char buffer[16] = {};
  EXPECT_EQ(::read(reading, buffer, sizeof buffer), 7);
  EXPECT_STREQ(buffer, "through");
  ::close(reading);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  const int number = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_EQ(::write(number, "before ", 7), 7);
  write_file("/dev/fd/" + std::to_string(number), "after");
  ::close(number);
  EXPECT_EQ(read_file(folder / "log"), "before after");
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(File, AFullPipeThatDoesNotBlockIsAwaited) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reading = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK),
            writing = ::open((folder / "pipe").c_str(), O_WRONLY | O_NONBLOCK);
  const std::string text(300'000, 'x');  // more than a pipe holds
  std::size_t read = 0;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::string buffer(4096, ' ');
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (read < text.size() && std::chrono::steady_clock::now() < until) {
      const ssize_t n = ::read(reading, buffer.data(), buffer.size());
      if (n > 0)
        read += static_cast<std::size_t>(n);
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const int saved = ::dup(STDOUT_FILENO);
  ::dup2(writing, STDOUT_FILENO);
  EXPECT_NO_THROW(write_file("-", text));
  ::dup2(saved, STDOUT_FILENO);
  for (const int descriptor : {saved, writing}) ::close(descriptor);
  reader.join();
  ::close(reading);
  EXPECT_EQ(read, text.size());
}

TEST(Log, AFullStandardErrorThatDoesNotBlockIsAwaited) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const std::string filler(4096, 'x');
  std::size_t filled = 0;
  for (ssize_t n; (n = ::write(ends[1], filler.data(), filler.size())) > 0;)
    filled += static_cast<std::size_t>(n);
  std::string read;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::string buffer(4096, ' ');
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!read.ends_with("the end\n") && std::chrono::steady_clock::now() < until) {
      const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
      if (n > 0)
        read.append(buffer, 0, static_cast<std::size_t>(n));
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  log::warn("the end");
  ::dup2(saved, STDERR_FILENO);
  reader.join();
  for (const int descriptor : {saved, ends[0], ends[1]}) ::close(descriptor);
  EXPECT_EQ(read.substr(filled), "warning: the end\n");
}

TEST(File, WhatCannotBeReplacedIsRefusedBeforeItIsWritten) {
  const Folder folder;
  const std::string longer = folder / std::string(300, 'n');
  EXPECT_EQ(error_of([&] { const AtomicFile file(longer); }, ExitStatus::usage),
            longer + ": cannot be written: File name too long");
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(File, AnOutputThatCannotTakeItsNameIsKept) {
  const Folder folder;
  AtomicFile file(folder / "a");
  file.write("a chapter");
  fs::create_directories(folder / "a/b");
  const std::string error = error_of([&] { file.commit(); }, ExitStatus::failed);
  const std::string where = "; the output is in ";
  ASSERT_NE(error.find(where), std::string::npos) << error;
  EXPECT_EQ(read_file(error.substr(error.find(where) + where.size())), "a chapter");
}

TEST(File, DashIsStandardOutput) {
  testing::internal::CaptureStdout();
  write_file("-", "said");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "said");
  EXPECT_FALSE(fs::exists("-"));
}

TEST(File, OtherFilesAreNotTouched) {
  const Folder folder;
  write_file(folder / "a.part", "a chapter");
  {
    AtomicFile one(folder / "a"), other(folder / "a");  // two at once
    one.write("one");
    other.write("other");
    one.commit();
    other.commit();
  }
  EXPECT_EQ(read_file(folder / "a"), "other");
  EXPECT_EQ(read_file(folder / "a.part"), "a chapter");
  EXPECT_NE(error_of([&] { AtomicFile(folder / "b/"); }, ExitStatus::usage).find("is a directory"),
            std::string::npos);
  EXPECT_NE(error_of([&] { AtomicFile(folder.path); }, ExitStatus::usage).find("is a directory"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(File, DirectoriesAppearAtomically) {
  const Folder folder;
  write_directory(folder / "d", [&](const std::string& directory) {
    EXPECT_FALSE(fs::exists(folder / "d"));
    write_file(directory + "/a", "1");
  });
  EXPECT_EQ(read_file(folder / "d/a"), "1");
  write_directory(folder / "e/", [&](const std::string& directory) {
    fs::create_directory(directory + "/deeper");
    fs::create_directory_symlink("deeper", directory + "/latest");
  });
  EXPECT_TRUE(fs::is_directory(folder / "e/latest"));
  fs::remove_all(folder / "e");
  fs::create_directory(folder / ".tmp-left-9");
  write_file(folder / ".tmp-left-9/a", "half");
  remove_temporaries(folder.path);
  EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace nmt
