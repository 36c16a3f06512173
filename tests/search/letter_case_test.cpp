#include "search/text/letter_case.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(LetterCase, OfALine) {
  for (const char* line :
       {"A MAN RUNS", "  DER BÄCKER: 2 BRÖTCHEN!", "I AM A.B.", "ΤΡΕΙΣ ΜΙΚΡΕΣ ΛΕΞΕΙΣ"})
    EXPECT_EQ(letter_case_of(line), LetterCase::upper) << line;
  for (const char* line : {"A Man Runs Over Grass", "\"Die 3 Bäcker Von Köln\" Singen Laut"})
    EXPECT_EQ(letter_case_of(line), LetterCase::title) << line;
  for (const char* line : {"", "NATO", "NATO AND", "NATO 12 34 56", "A MAN runs",
                           "A man runs over grass", "New York City Marathon", "A Man Runs On gRASS",
                           "A Man RUNS Over Grass", "我们 今天 去 公园 玩", "1 2 3 4 5"})
    EXPECT_EQ(letter_case_of(line), LetterCase::mixed) << line;
}

TEST(LetterCase, LinesOfScriptsWithoutCaseAreMixed) {
  for (const char* line :
       {"我们 使用 USB 和 HDMI 以及 VGA 接口", "USB と HDMI と VGA を使う",
        "نستخدم USB و HDMI و VGA", "한국은 NATO 와 EU 와 UN 과", "इसमें USB और HDMI और VGA हैं",
        "我们 使用 Apple 和 Google 和 Microsoft 和 Meta 和 Amazon", "NATO UN EU 是"})
    EXPECT_EQ(letter_case_of(line), LetterCase::mixed) << line;
  // Characters that are letters of no script.
  for (const char* line :
       {"A MAN\u200b RUNS\u2014\u201cFAST\u201d", "\U0001f600 A MAN \u2764\ufe0f RUNS",
        "\ufeffA MAN RUNS", "A MAN\u3002 RUNS \u0664 \ue000", "CAFE\u0301 DE PARIS"})
    EXPECT_EQ(letter_case_of(line), LetterCase::upper) << line;
}

TEST(LetterCase, Letters) {
  for (const char32_t c : {U'a', U'Z', U'\u00e9', U'\u4e2d', U'\u0939', U'\U00020000', U'\uac00'})
    EXPECT_TRUE(is_letter(c)) << static_cast<std::uint32_t>(c);
  for (const char32_t c :
       {U'1', U' ', U'.', U'_', U'\u00a0', U'\u061c', U'\u200d', U'\u3002', U'\u20ac', U'\ue000',
        U'\ufe0f', U'\ufeff', U'\U0001f600', U'\U000e0067'})
    EXPECT_FALSE(is_letter(c)) << static_cast<std::uint32_t>(c);
}

TEST(LetterCase, Changes) {
  EXPECT_EQ(in_sentence_case("\"DER BÄCKER VON KÖLN\""), "\"Der bäcker von köln\"");
  EXPECT_EQ(in_sentence_case("3 MEN RUN"), "3 men run");
  EXPECT_EQ(in_sentence_case(""), "");
  EXPECT_EQ(in_case("Zwei große Hunde.", LetterCase::upper), "ZWEI GROSSE HUNDE.");
  EXPECT_EQ(in_case("Zwei große Hunde.", LetterCase::title), "Zwei Große Hunde.");
  EXPECT_EQ(in_case("Zwei große Hunde.", LetterCase::mixed), "Zwei große Hunde.");
}

}  // namespace
}  // namespace nmt
