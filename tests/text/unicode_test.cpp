#include "text/unicode.h"

#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

std::string upper(const char* text) {
  return encode_utf8(uppercase_of(decode_utf8(text)));
}
std::string capitalized(const char* text) {
  return encode_utf8(capitalized_words_of(decode_utf8(text)));
}

// Expectations: UnicodeData.txt and SpecialCasing.txt of Unicode 14.
TEST(Unicode, UpperCase) {
  EXPECT_EQ(upper("Der süße Fuß, 2 Öfen"), "DER SÜSSE FUSS, 2 ÖFEN");
  EXPECT_EQ(upper("\uFB01n \u0149 \u0390"), "FIN \u02BCN \u0399\u0308\u0301");
  EXPECT_EQ(upper("ёлка ς ǆ ÿ"), "ЁЛКА Σ Ǆ Ÿ");
  EXPECT_EQ(upper("Ⅷ ⅷ 文字 ა 😀"), "Ⅷ Ⅷ 文字 Ა 😀");
  EXPECT_EQ(upper(""), "");
}

TEST(Unicode, WordsBeginWithCapitals) {
  EXPECT_EQ(capitalized("ein mann übt im T-shirt."), "Ein Mann Übt Im T-shirt.");
  EXPECT_EQ(capitalized("„hallo“ (ßa) 2nd $usd ǆ ა"), "„Hallo“ (Ssa) 2nd $Usd ǅ ა");
  EXPECT_EQ(capitalized("  iPhone\t\"'élan  "), "  IPhone\t\"'Élan  ");
}

}  // namespace
}  // namespace nmt
