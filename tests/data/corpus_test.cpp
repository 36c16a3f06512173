#include "data/corpus.h"

#include "core/error.h"
#include "tests/data/error_of.h"
#include "tests/data/temporary_files.h"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace nmt {
namespace {

using namespace std::string_literals;

TEST(TextFile, LinesAreThoseOfLinesH) {
  const TemporaryFiles files;
  const std::vector<std::string> texts{"",
                                       "\n",
                                       "a",
                                       "a\nb\n",
                                       "a\nb",
                                       "\n\nx\n\n",
                                       "\xEF\xBB\xBF"
                                       "first\r\nsecond\r\nlast\r",
                                       "nul\0in\n\xFF\nu\xE2\x80\xA8v\rw\n"s};
  for (const std::string& text : texts) {
    const TextFile file(files.write("text", text));
    LineNotes expected_notes;
    const auto expected = split_lines(text, &expected_notes);
    ASSERT_EQ(file.lines(), static_cast<std::int64_t>(expected.size())) << text;
    std::string storage;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(file.line(static_cast<std::int64_t>(i), storage), expected[i]);
    EXPECT_EQ(file.notes().messages("f"), expected_notes.messages("f"));
    EXPECT_THROW(file.raw(file.lines()), Error);
  }
}

TEST(TextFile, UnusableFiles) {
  const TemporaryFiles files;
  for (const std::string& path : {files.folder() + "/none", files.folder()}) {
    const auto [status, text] = error_of([&] { TextFile file(path); });
    EXPECT_EQ(status, ExitStatus::usage);
    EXPECT_TRUE(text.starts_with(path)) << text;
  }
  const std::string compressed = files.write("text.gz", "\x1F\x8B\x08\0\n"s);
  const auto [status, text] = error_of([&] { TextFile file(compressed); });
  EXPECT_EQ(status, ExitStatus::data);
  EXPECT_EQ(text, compressed + ": gzip-compressed: decompress it first");
  const std::string pipe = files.folder() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { TextFile file(pipe); }).first, ExitStatus::usage);
}

TEST(ParallelCorpus, ReadsPairs) {
  const TemporaryFiles files;
  const ParallelCorpus corpus(files.write("a.en", "one\ntwo\r\n"),
                              files.write("a.de", "eins\nzwei"));
  std::string storage;
  EXPECT_EQ(corpus.pairs(), 2);
  EXPECT_EQ(corpus.line(Side::source, 1, storage), "two");
  EXPECT_EQ(corpus.line(Side::target, 1, storage), "zwei");
}

TEST(ParallelCorpus, EmptyAndUnequalFiles) {
  const TemporaryFiles files;
  const std::string none = files.write("none", ""), two = files.write("two", "a\nb\n"),
                    three = files.write("three", "a\nb\nc");
  auto [status, text] = error_of([&] { ParallelCorpus corpus(two, none); });
  EXPECT_EQ(status, ExitStatus::data);
  EXPECT_NE(text.find(none), std::string::npos);
  std::tie(status, text) = error_of([&] { ParallelCorpus corpus(two, three); });
  EXPECT_EQ(status, ExitStatus::data);
  EXPECT_NE(text.find(two + " has 2 lines"), std::string::npos) << text;
  EXPECT_NE(text.find(three + " has 3"), std::string::npos) << text;
}

TEST(ParallelCorpus, NamesTheFirstLineWithoutPartner) {
  const TemporaryFiles files;
  std::string source, target;
  for (int i = 1; i <= 400; ++i) {
    const std::string line(5 + static_cast<std::size_t>(i) * 37 % 90, 'x');
    source += line + "\n";
    if (i != 137) target += line + line.substr(0, line.size() / 5) + "\n";
  }
  const std::string a = files.write("a", source), b = files.write("b", target);
  EXPECT_NE(error_of([&] { ParallelCorpus corpus(a, b); }).second.find("line 137 of " + a),
            std::string::npos);
  EXPECT_NE(error_of([&] { ParallelCorpus corpus(b, a); }).second.find("line 137 of " + a),
            std::string::npos);
}

TEST(ParallelCorpus, HashFollowsContentAndSize) {
  const TemporaryFiles files;
  std::string large;
  while (large.size() < std::size_t{9} << 20)
    large += "a line of some length " + std::to_string(large.size()) + "\n";
  const std::string path = files.write("t", "x\ny\n"), other = files.write("u", "x\ny\n");
  const auto hash = [&](const std::string& text) {
    const std::string source = files.write("s", text);
    return TextFile(source).fingerprint();
  };
  const auto identity = [](const std::string& source, const std::string& target) {
    return ParallelCorpus(source, target).identity().current;
  };
  EXPECT_EQ(identity(path, other).size(), 32u);
  EXPECT_EQ(identity(path, other), identity(other, path));
  EXPECT_NE(hash("x\ny\n"), hash("x\nz\n"));
  EXPECT_NE(hash("x\ny\n"), hash("x\ny"));
  EXPECT_NE(hash("x\ny"), hash("x\ny\0"s));
  EXPECT_EQ(hash(large), hash(large));
  // Every byte counts, also between the samples of version 0.2.0.
  const std::uint64_t before = hash(large);
  for (std::size_t i = 0; i < 60; ++i) {
    std::string edited = large;
    char& byte = edited[(large.size() - 1) / 59 * i];
    byte = byte == 'y' ? 'z' : 'y';
    EXPECT_NE(hash(edited), before) << i;
  }
  const TextFile file(files.write("s", large)), small(path);
  EXPECT_NE(file.v0_2_fingerprint(), file.fingerprint());
  EXPECT_EQ(small.v0_2_fingerprint(), small.fingerprint());
  EXPECT_NE(hash(large), hash(large + "\n"));
  std::string changed = large;
  changed.back() = 'x';
  EXPECT_NE(hash(large), hash(changed));
  changed = large;
  changed[0] = 'x';
  EXPECT_NE(hash(large), hash(changed));
}

}  // namespace
}  // namespace nmt
