#include "search/text/letter_case.h"

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
