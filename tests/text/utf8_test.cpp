#include "text/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace std::string_literals;

std::string repaired(const std::string& text, std::size_t expected_count) {
  std::string out;
  EXPECT_EQ(repair_utf8(text, out), expected_count);
  EXPECT_EQ(is_valid_utf8(text), expected_count == 0);
  EXPECT_TRUE(is_valid_utf8(out));
  return out;
}

const std::string kBad = "\xEF\xBF\xBD";
std::string bad(int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += kBad;
  return all;
}

TEST(Utf8, CountsCharacters) {
  EXPECT_EQ(count_characters(""), 0u);
  EXPECT_EQ(count_characters("a dog"), 5u);
  EXPECT_EQ(count_characters("\u00fc\u20ac\U0001F600"), 3u);  // of 2, 3 and 4 bytes
}

// The examples of Unicode 15.0, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ExamplesOfTheStandard) {
  EXPECT_EQ(repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 8), bad(8) + "A");
  EXPECT_EQ(repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 8), bad(8) + "A");
  EXPECT_EQ(repaired("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 7), bad(5) + "A" + bad(2) + "B");
  EXPECT_EQ(repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 4), bad(4) + "A");
}

TEST(Utf8, ValidTextIsUntouched) {
  const std::vector<std::string> texts{"",
                                       "plain ASCII text of some length",
                                       "a\0b"s,
                                       "äöüß €",
                                       "\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF",
                                       "\xC2\x85\xE2\x80\xA8\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"};
  for (const auto& text : texts) EXPECT_EQ(repaired(text, 0), text);
}

TEST(Utf8, CutAtEveryPlace) {
  const std::string text =
      "12345678\xE2\x82\xAC"
      "12345678\xF0\x9F\x98\x80";
  EXPECT_EQ(repaired(text.substr(0, 9), 1), "12345678" + kBad);
  EXPECT_EQ(repaired(text.substr(0, 10), 1), "12345678" + kBad);
  EXPECT_EQ(repaired(text.substr(0, 22), 1), text.substr(0, 19) + kBad);
  EXPECT_EQ(repaired(text.substr(9), 2), bad(2) + "12345678\xF0\x9F\x98\x80");
}

// Every code point is valid when encoded; neighboring byte sequences that encode none are invalid.
TEST(Utf8, EveryCodePoint) {
  for (unsigned point = 0x80; point < 0x110000; point += point < 0x3000 ? 1 : 97) {
    std::string text;
    const auto tail = [&](unsigned shift) {
      text += static_cast<char>(0x80 | (point >> shift & 63));
    };
    if (point < 0x800) {
      text += static_cast<char>(0xC0 | point >> 6);
    } else if (point < 0x10000) {
      text += static_cast<char>(0xE0 | point >> 12);
      tail(6);
    } else {
      text += static_cast<char>(0xF0 | point >> 18);
      tail(12);
      tail(6);
    }
    tail(0);
    ASSERT_EQ(is_valid_utf8(text), point < 0xD800 || point > 0xDFFF) << point;
  }
}

}  // namespace
}  // namespace nmt
