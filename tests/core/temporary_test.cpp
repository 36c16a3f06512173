#include "core/files/temporary.h"

#include "core/files/file.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() : path(testing::TempDir() + "nmt_temporary_test_" + std::to_string(::getpid())) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

// Whether the body, in a process of its own that handles signals, ends by the signal.
void expect_end_by(int signal, const std::function<void()>& body) {
  const auto run = [&] {
    remove_temporaries_on_signals();
    body();
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(signal), "") << signal;
}

TEST(Temporary, SignalsRemoveAFileAndKeepItsTarget) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGXCPU}) {
    const Folder folder;
    write_file(folder / "a", "before");
    expect_end_by(signal, [&] {
      AtomicFile file(folder / "a");
      file.write("half");
      ::raise(signal);
    });
    EXPECT_EQ(read_file(folder / "a"), "before");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 1) << signal;
  }
}

TEST(Temporary, SignalsRemoveADirectoryWithItsContents) {
  const Folder folder;
  expect_end_by(SIGINT, [&] {
    write_directory(folder / "model", [&](const std::string& directory) {
      for (int i = 0; i < 500; ++i) std::ofstream(directory + "/a long name " + std::to_string(i));
      fs::create_directories(directory + "/a/b/c");
      std::ofstream(directory + "/a/b/file");
      write_file(folder / "kept", "whole");
      fs::create_symlink(folder / "kept", directory + "/link to a file");
      fs::create_directory_symlink(folder.path, directory + "/a/link");
      AtomicFile half(directory + "/weights");
      half.write("half");
      ::raise(SIGINT);
    });
  });
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 1);
  EXPECT_EQ(read_file(folder / "kept"), "whole");
}

TEST(Temporary, WhatIsPublishedOrDiscardedIsNotRemoved) {
  const Folder folder;
  expect_end_by(SIGTERM, [&] {
    write_file(folder / "a", "whole");
    write_directory(folder / "b",
                    [](const std::string& directory) { write_file(directory + "/c", "whole"); });
    AtomicFile first(folder / "d");
    { const AtomicFile discarded(folder / "e"); }
    AtomicFile second(folder / "f");
    first.commit();
    ::raise(SIGTERM);
  });
  EXPECT_EQ(read_file(folder / "a"), "whole");
  EXPECT_EQ(read_file(folder / "b/c"), "whole");
  EXPECT_TRUE(fs::exists(folder / "d"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 3);
}

TEST(Temporary, AThreadThatMakesTemporariesLeavesNone) {
  const Folder folder;
  for (int round = 0; round < 20; ++round) {
    expect_end_by(SIGTERM, [&] {
      std::thread maker([&] {
        try {
          for (;;) {
            AtomicFile a(folder / "a");
            write_directory(folder / "b", [](const std::string& b) {
              for (int i = 0; i < 50; ++i) std::ofstream(b + "/" + std::to_string(i));
              write_file(b + "/c", "c");
            });
            fs::remove_all(folder / "b");
          }
        } catch (...) {
          std::_Exit(1);  // discard() waits while the process ends, so no error escapes
        }
      });
      ::usleep(5000);
      ::raise(SIGTERM);
    });
    fs::remove_all(folder / "b");
    EXPECT_TRUE(fs::is_empty(folder.path));
  }
}

TEST(Temporary, IgnoredSignalsStayIgnored) {
  const Folder folder;
  const auto run = [&] {
    std::signal(SIGHUP, SIG_IGN);
    remove_temporaries_on_signals();
    AtomicFile file(folder / "a");
    ::raise(SIGHUP);
    file.commit();
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(fs::exists(folder / "a"));
}

TEST(Temporary, NamesOfKilledProcessesAreSkipped) {
  const Folder folder;
  Temporary first;
  const int descriptor = first.make_file(folder / "a");
  ASSERT_GE(descriptor, 0);
  ::close(descriptor);
  EXPECT_TRUE(is_temporary_name(fs::path(first.name()).filename().string()));
  // The names that follow are taken.
  const std::size_t dash = first.name().rfind('-');
  const int number = std::stoi(first.name().substr(dash + 1));
  for (int i = 1; i <= 3; ++i)
    fs::create_directory(first.name().substr(0, dash + 1) + std::to_string(number + i));
  Temporary second;
  ASSERT_TRUE(second.make_directory(folder / "a"));
  EXPECT_NE(second.name(), first.name());
  ASSERT_TRUE(second.publish(folder / "b"));
  EXPECT_EQ(second.name(), "");
  EXPECT_TRUE(fs::is_directory(folder / "b"));
  EXPECT_FALSE(Temporary().make_directory(folder / "none/a"));
  EXPECT_EQ(Temporary().make_file(folder / "none/a"), -1);
  remove_temporaries(folder.path);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 1);
}

}  // namespace
}  // namespace nmt
