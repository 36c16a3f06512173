#include "text/lines.h"

#include "core/error.h"

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt {
namespace {

using namespace std::string_literals;

using Lines = std::vector<std::string>;

/// A pipe; the test writes to it.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    close_writer();
    ::close(ends[0]);
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  int ends[2];
};

/// The lines of `text`, read from memory and as a stream; both must be equal.
Lines read(const std::string& text, LineNotes* notes = nullptr) {
  LineNotes of_memory;
  const Lines split = split_lines(text, &of_memory);
  Pipe pipe;
  std::thread writer([&] {
    for (std::size_t at = 0; at < text.size(); at += 7000)
      pipe.write(std::string_view(text).substr(at, 7000));
    pipe.close_writer();
  });
  LineReader reader(pipe.ends[0], "pipe");
  Lines streamed;
  for (std::string line; reader.next(line);) streamed.push_back(line);
  writer.join();
  EXPECT_EQ(streamed, split);
  EXPECT_EQ(reader.lines(), static_cast<std::int64_t>(split.size()));
  EXPECT_EQ(reader.notes().messages("x"), of_memory.messages("x"));
  if (notes) *notes = of_memory;
  return split;
}

TEST(Lines, OnlyLineFeedEndsALine) {
  EXPECT_EQ(read(""), Lines{});
  EXPECT_EQ(read("\n"), Lines{""});
  EXPECT_EQ(read("\n\n\n"), (Lines{"", "", ""}));
  EXPECT_EQ(read("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(read("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(read("a\rb\n\xE2\x80\xA8 \xC2\x85 \v \f\n"),
            (Lines{"a\rb", "\xE2\x80\xA8 \xC2\x85 \v \f"}));
  EXPECT_EQ(read(" \t \nx \n"), (Lines{" \t ", "x "}));
}

TEST(Lines, MarksAreStrippedAndNoted) {
  LineNotes notes;
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a\r\n\xEF\xBB\xBF"
                 "b\r\r\nc\r",
                 &notes),
            (Lines{"a",
                   "\xEF\xBB\xBF"
                   "b\r",
                   "c\r"}));
  EXPECT_EQ(notes.byte_order_mark.lines, 1);
  EXPECT_EQ(notes.byte_order_mark.first, 1);
  EXPECT_EQ(notes.carriage_return.lines, 2);
  EXPECT_EQ(notes.carriage_return.first, 1);
  EXPECT_EQ(notes.invalid_utf8.lines + notes.nul.lines, 0);
  EXPECT_EQ(read("\xEF\xBB\xBF", &notes), Lines{""});
}

TEST(Lines, NulAndInvalidBytes) {
  LineNotes notes;
  EXPECT_EQ(read("ok\na\0b\n\xFFx\xFE\nok\n\xE2\x82\n"s, &notes),
            (Lines{"ok", "a\0b"s, "\xEF\xBF\xBDx\xEF\xBF\xBD", "ok", "\xEF\xBF\xBD"}));
  EXPECT_EQ(notes.nul.lines, 1);
  EXPECT_EQ(notes.nul.first, 2);
  EXPECT_EQ(notes.invalid_utf8.lines, 2);
  EXPECT_EQ(notes.invalid_utf8.first, 3);
  const Lines messages = notes.messages("in.txt");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0], "in.txt: line 3 and 1 more had invalid UTF-8; it was replaced by U+FFFD");
  EXPECT_EQ(messages[1], "in.txt: line 2 had NUL bytes; they were kept");
}

// The marks of RFC 1952 and 8878, the xz file format, bzip2, and Unicode 15, section 23.8.
TEST(Lines, CompressedAndOtherEncodingsAreRefused) {
  const auto message = [](const std::string& text) -> std::string {
    Pipe pipe;
    pipe.write(text);
    pipe.close_writer();
    LineReader reader(pipe.ends[0], "pipe");
    try {
      for (std::string line; reader.next(line);) continue;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("\x1F\x8B\x08\0\n"s), "pipe: gzip-compressed: decompress it first");
  EXPECT_EQ(message("\x28\xB5\x2F\xFD"), "pipe: zstd-compressed: decompress it first");
  EXPECT_EQ(message("\xFD\x37\x7A\x58\x5A\0\n"s), "pipe: xz-compressed: decompress it first");
  for (const char* bzip2 : {"BZh91AY&SY\x12", "BZh9\x17\x72\x45\x38\x50\x90"})
    EXPECT_EQ(message(bzip2), "pipe: bzip2-compressed: decompress it first");
  const std::string convert = ": convert it to UTF-8, for example with iconv";
  for (const std::string& text : {"\xFF\xFE\n\0"s, "\xFE\xFF\0\n"s, "\xFF\xFEx\0\n\0"s})
    EXPECT_EQ(message(text), "pipe: UTF-16" + convert);
  for (const std::string& text : {"\xFF\xFE\0\0\n\0\0\0"s, "\0\0\xFE\xFF\0\0\0\n"s})
    EXPECT_EQ(message(text), "pipe: UTF-32" + convert);
  // Text and other bytes, and the same marks further on.
  for (const std::string& text : {"BZh is a name\n"s, "BZh9 \n"s, "\xEF\xBB\xBFx\n"s, "\x1F\n"s,
                                  "\xFF\n"s, "\0\0\n"s, "x\n\xFF\xFEx\n"s, "\n\x1F\x8B\n"s})
    EXPECT_EQ(message(text), "") << text;
}

TEST(Lines, LongLines) {
  const std::string line(1'000'000, 'y');
  EXPECT_EQ(read("a\n" + line + "\nb\n" + line), (Lines{"a", line, "b", line}));
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += std::to_string(i) + "\n";
  const Lines lines = read(many);
  ASSERT_EQ(lines.size(), 100'000u);
  EXPECT_EQ(lines[99'999], "99999");
}

TEST(Lines, ALineIsThereWhenItsEndArrived) {
  Pipe pipe;
  LineReader reader(pipe.ends[0], "pipe");
  std::string line;
  EXPECT_FALSE(reader.available());
  pipe.write("hello");
  EXPECT_FALSE(reader.available());
  pipe.write("\nwor");
  EXPECT_TRUE(reader.available());
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(line, "hello");
  EXPECT_FALSE(reader.available());
  pipe.write("ld");
  EXPECT_FALSE(reader.available());
  pipe.close_writer();
  EXPECT_TRUE(reader.available());
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(line, "world");
  EXPECT_TRUE(reader.available());
  EXPECT_FALSE(reader.next(line));
  EXPECT_FALSE(reader.next(line));
}

TEST(Lines, NonBlockingDescriptorIsWaitedFor) {
  Pipe pipe;
  ::fcntl(pipe.ends[0], F_SETFL, O_NONBLOCK);
  LineReader reader(pipe.ends[0], "pipe");
  std::thread writer([&] {
    ::usleep(20'000);
    pipe.write("late\n");
  });
  std::string line;
  EXPECT_TRUE(reader.next(line));
  writer.join();
  EXPECT_EQ(line, "late");
}

TEST(Lines, UnusableFiles) {
  for (const char* path : {"/nonexistent/file", "/tmp"}) {
    try {
      LineReader::open(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
  }
  LineReader closed(-1, "nothing");
  std::string line;
  EXPECT_THROW(closed.next(line), Error);
}

TEST(Lines, NotesOnSeveralTextsCountTheirLines) {
  LineNotes all;
  std::int64_t before = 0;
  for (const char* text : {"a\nb", "", "c\n\xff\n\xfe"}) {
    LineNotes notes;
    const auto lines = split_lines(text, &notes);
    all.add(notes, before);
    before += std::ssize(lines);
  }
  EXPECT_EQ(all.messages("t"),
            (std::vector<std::string>{"t: line 4 and 1 more had invalid UTF-8; it was replaced by "
                                      "U+FFFD"}));
}

TEST(Lines, Blank) {
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \t\r"));
  EXPECT_FALSE(is_blank(" x"));
  EXPECT_FALSE(is_blank(std::string_view("\0", 1)));
}

TEST(Lines, Words) {
  for (const auto& [line, limit, count, kept] : {std::tuple("", 1, 0, 0),
                                                 {" \t ", 1, 0, 3},
                                                 {"one", 1, 1, 3},
                                                 {"  one two ", 1, 2, 5},
                                                 {"one\ttwo  three", 2, 3, 7},
                                                 {"one two", 2, 2, 7},
                                                 {"one two ", 3, 2, 8},
                                                 {"\xC3\xA4 b", 1, 2, 2}}) {
    const WordCount words = count_words(line, static_cast<std::size_t>(limit));
    EXPECT_EQ(words.count, static_cast<std::size_t>(count)) << line;
    EXPECT_EQ(words.kept_bytes, static_cast<std::size_t>(kept)) << line;
  }
}

}  // namespace
}  // namespace nmt
