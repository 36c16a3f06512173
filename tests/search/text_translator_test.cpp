#include "search/text/text_translator.h"

#include "core/threads/thread_pool.h"
#include "search/text/line_parts.h"
#include "search/text/repetition_guard.h"
#include "small_vocabulary.h"
#include "table_scorer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Lines = std::vector<std::string>;

TEST(RepetitionGuard, LoopsOfWords) {
  const auto found = [](const char* source, const char* output) {
    return find_output_repetition(source, {}, output, {});
  };
  EXPECT_TRUE(found("Hello", "Hallo Hallo").found);
  EXPECT_TRUE(found("Thank you.", "Danke, danke.").found);
  EXPECT_TRUE(found("a long line with many words", "der der der Mann").found);
  EXPECT_TRUE(found("a long line with many words", "das ist das ist das ist gut").found);
  EXPECT_FALSE(found("a long line with many words", "die Frau, die die Tasche hat").found);
  EXPECT_FALSE(found("no no", "nein nein").found);
  EXPECT_FALSE(found("No, no, no, that is not it", "Nein, nein, nein, das nicht").found);
  EXPECT_TRUE(found("no no", "nein nein nein").found);
  EXPECT_FALSE(found("", "").found);
}

// A sentence without spaces is not one word.
TEST(RepetitionGuard, ScriptsWithoutSpaces) {
  const auto found = [](const char* source, const char* output) {
    return find_output_repetition(source, {}, output, {}).found;
  };
  const char* very = "It is very, very good.";
  EXPECT_FALSE(found("\u8fd9\u672c\u4e66\u771f\u7684\u5f88\u597d\u770b\u3002", very));
  EXPECT_FALSE(found("\u3053\u306e\u672c\u306f\u3068\u3066\u3082\u3044\u3044\u3067\u3059", very));
  EXPECT_FALSE(
      found("\u0e2b\u0e19\u0e31\u0e07\u0e2a\u0e37\u0e2d\u0e14\u0e35\u0e21\u0e32\u0e01", very));
  EXPECT_TRUE(found("\u8fd9\u672c\u4e66\u771f\u7684\u5f88\u597d\u770b\u3002", "It is is is good."));
  // Short sources; punctuation is not counted, and Korean has spaces.
  EXPECT_TRUE(found("\u8fd9\u672c\u4e66\u771f\u7684\u5f88\u597d\u3002\u3002", very));
  EXPECT_TRUE(found("\u4f60\u597d", "Hello hello"));
  EXPECT_TRUE(found("\uc815\ub9d0 \uc88b\uc740 \ucc45\uc785\ub2c8\ub2e4", very));
}

TEST(RepetitionGuard, SourcesThatRepeatCharacters) {
  const auto found = [](const char* source, const char* output) {
    return find_output_repetition(source, {}, output, {}).found;
  };
  EXPECT_FALSE(found("\u975e\u5e38\u975e\u5e38\u597d", "very, very good"));
  EXPECT_TRUE(found("\u975e\u5e38\u975e\u5e38\u597d", "very very very good"));
  EXPECT_FALSE(found("\u5bf9\u5bf9\u5bf9", "yes, yes, yes"));
  EXPECT_TRUE(found("\u8c22\u8c22", "thanks thanks"));  // one word
  EXPECT_TRUE(found("hahaha", "haha haha"));
}

TEST(RepetitionGuard, LoopsOfPieces) {
  const std::vector<std::int32_t> loop{9, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5}, plain{9, 4, 5, 6};
  const OutputRepetition found = find_output_repetition("a b c d e", plain, "x", loop);
  EXPECT_TRUE(found.found);
  EXPECT_FALSE(found.of_words);
  EXPECT_EQ(found.begin, 1u);
  EXPECT_EQ(found.length, 2u);
  EXPECT_EQ(found.times, 5u);
  EXPECT_FALSE(find_output_repetition("a b c d e", loop, "x", loop).found);
  EXPECT_FALSE(find_output_repetition("a b c d e", plain, "x", plain).found);
}

TEST(RepetitionGuard, CutsToOneOccurrence) {
  const auto cut = [](const std::string& text) {
    return without_repeated_words(text, find_output_repetition("x", {}, text, {}));
  };
  EXPECT_EQ(cut("Hallo Hallo"), "Hallo");
  EXPECT_EQ(cut("Hallo, hallo!"), "Hallo!");
  EXPECT_EQ(cut("Ich bin ich bin hier."), "Ich bin hier.");
  EXPECT_EQ(cut("gut gut gut gut"), "gut");
  EXPECT_EQ(cut("- - -"), "-");
}

TEST(LineParts, JoinedInTheOrderOfTheLine) {
  const std::string line = "  Hello {name}, you have %d new , 5 messages.";
  const std::vector<TextSpan> spans = find_spans(line, {true, true, true, true, true});
  const LineParts parts(line, spans);
  std::vector<std::string> sources;
  for (const LineParts::Part& part : parts.parts)
    if (part.translate) sources.push_back(part.text);
  EXPECT_EQ(sources, (std::vector<std::string>{"Hello", "you have", "new ,", "messages."}));
  EXPECT_EQ(parts.join(sources), line);
  EXPECT_EQ(parts.join({"Hallo.", "du hast!", "neue ,", "Nachrichten."}),
            "  Hallo {name}, du hast %d neue , 5 Nachrichten.");
}

// A translation that lacks the mark would be glued to the span.
TEST(LineParts, MarksBehindASpanStay) {
  const auto joined = [](const std::string& line, const Lines& translations) {
    return LineParts(line, find_spans(line, {.placeholders = true, .emails = true}))
        .join(translations);
  };
  EXPECT_EQ(joined("Call a@b.org: Eight.", {"Ruf", "Acht."}), "Ruf a@b.org: Acht.");
  EXPECT_EQ(joined("{a}). So {b}'s dog", {"Also", "s Hund"}), "{a}). Also {b}s Hund");
  EXPECT_EQ(joined(": so {a}", {"so:"}), "so: {a}");
}

TEST(LineParts, MarksThatTheSourceLacksAreDropped) {
  const auto joined = [](const std::string& line, const Lines& translations) {
    return LineParts(line, find_spans(line, {.placeholders = true})).join(translations);
  };
  EXPECT_EQ(joined("Click {name} to go on.", {"\u70b9\u51fb\u3002", "\u7ee7\u7eed\u3002"}),
            "\u70b9\u51fb {name} \u7ee7\u7eed\u3002");
  EXPECT_EQ(joined("a {name} b", {"x\uff01?\uff1f.", "\u3002"}), "x {name} ");
  EXPECT_EQ(joined("\u70b9\u51fb\u3002{name} b", {"Click.", "y!"}), "Click.{name} y");
}

TEST(LineParts, WhiteSpaceOfUnicodeStaysAroundText) {
  const std::string line = "\u3000Hi\u00a0{a}\u2009you \u00a0";
  const LineParts parts(line, find_spans(line, {.placeholders = true}));
  std::vector<std::string> sources;
  for (const LineParts::Part& part : parts.parts)
    if (part.translate) sources.push_back(part.text);
  EXPECT_EQ(sources, (std::vector<std::string>{"Hi", "you"}));
  EXPECT_EQ(parts.join({"Hallo", "du"}), "\u3000Hallo\u00a0{a}\u2009du \u00a0");
}

TEST(LineParts, TextWithoutLettersIsNotTranslated) {
  const auto is_translated = [](const std::string& text) {
    const std::string line = "{a}" + text + "{b}";
    const LineParts parts(line, find_spans(line, {.placeholders = true}));
    return std::any_of(parts.parts.begin(), parts.parts.end(),
                       [](const LineParts::Part& part) { return part.translate; });
  };
  for (const char* text :
       {" \u2014 ", "\u2026", "\uff0c", "\u20ac", "\u00b7", "\u00a0", "\u3000", "\u200b", "\u200f",
        "\u00bd", "\u0664", "\u0964", "\u2764\ufe0f", "\U0001f600", "\ufffd", " - ", "", "\ufeff"})
    EXPECT_FALSE(is_translated(text)) << text;
  for (const char* text : {"\u00e9", "\u4e2d", "\u0939", "\u2014 x", "\U00020000", "\uac00"})
    EXPECT_TRUE(is_translated(text)) << text;
}

/// Copies the source; pieces of digits get lost where `drops_digits`. After its end the source is
/// repeated `echo` times, more probably than </s> or, where `only_echo`, with probability 1.
struct Copier {
  bool drops_digits = false;
  int echo = 0;
  bool only_echo = false;
  bool digits_second = false;  ///< the second-best hypothesis has the lost digits at its end
};

bool is_digit_piece(std::int32_t id) {
  const std::string piece = small_vocabulary().piece(id);
  return std::any_of(piece.begin(), piece.end(), [](char c) { return c >= '0' && c <= '9'; });
}

TableScorer scorer_of(const Copier& copier) {
  return TableScorer(small_vocabulary().size(), [copier](const Ids& source, const Ids& prefix) {
    Ids wanted, lost;
    for (const std::int32_t id : source)
      (copier.drops_digits && is_digit_piece(id) ? lost : wanted).push_back(id);
    const bool at_end = prefix.size() == wanted.size();
    if (copier.digits_second && prefix.size() > wanted.size())
      wanted.insert(wanted.end(), lost.begin(), lost.end());
    for (int i = 0; i < copier.echo; ++i) wanted.insert(wanted.end(), source.begin(), source.end());
    std::vector<float> logits(small_vocabulary().size(),
                              copier.only_echo ? -std::numeric_limits<float>::infinity() : -5.0f);
    logits[2] *= 6;  // an early end is the least probable
    logits[prefix.size() < wanted.size() ? wanted[prefix.size()] : 2] = 5.0f;
    if (copier.digits_second && at_end && !lost.empty()) logits[lost.front()] = 4.0f;
    if (copier.echo > 0 && !copier.only_echo && prefix.size() == source.size()) logits[2] = 4.0f;
    return logits;
  });
}

class TextTranslatorTest : public testing::Test {
 protected:
  std::vector<std::string> translate(const Copier& copier, const TextRules& rules,
                                     const std::vector<std::string>& lines) {
    TableScorer table = scorer_of(copier);
    BatchTranslatorOptions options = translator_options(SearchSpec{}, Cpu{&pool});
    options.search.all_finished = rules.repetition_guard;
    BatchTranslator plain(table, small_vocabulary(), small_vocabulary(), options);
    TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
    std::vector<std::string> texts;
    for (const LineTranslation& line : translator.translate(lines))
      texts.push_back(line.outputs.at(0).text);
    return texts;
  }
  // The n-best lists that begin with the outputs of translate().
  std::vector<std::vector<std::string>> lists(const Copier& copier, const TextRules& rules,
                                              const std::vector<std::string>& lines) {
    TableScorer table = scorer_of(copier);
    BatchTranslatorOptions options = translator_options(SearchSpec{}, Cpu{&pool});
    options.search.all_finished = rules.repetition_guard;
    BatchTranslator plain(table, small_vocabulary(), small_vocabulary(), options);
    TextTranslator best(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
    options.search.n_best = true;
    BatchTranslator n_best(table, small_vocabulary(), small_vocabulary(), options);
    TextTranslator translator(n_best, small_vocabulary(), small_vocabulary(), rules, statistics,
                              &best);
    std::vector<std::vector<std::string>> texts;
    for (const LineTranslation& line : translator.translate(lines))
      for (texts.emplace_back(); const Output& output : line.outputs)
        texts.back().push_back(output.text);
    return texts;
  }
  ThreadPool pool{2};
  TextTranslator::Statistics statistics;
};

TEST_F(TextTranslatorTest, SpansThatTheModelKeepsNeedNoSecondPass) {
  TextRules rules;
  rules.preserve.numbers = true;
  EXPECT_EQ(translate({}, rules, {"the fox 12", "", "a dog"}), (Lines{"the fox 12", "", "a dog"}));
  EXPECT_EQ(statistics.in_parts, 0);
}

TEST_F(TextTranslatorTest, LostSpansAreRestored) {
  TextRules rules;
  rules.preserve.numbers = rules.preserve.marked = true;
  const Lines lines{"the fox  12 jumps", "a dog", "15", "a <keep>dog 7</keep> over 9"};
  EXPECT_EQ(translate({.drops_digits = true}, rules, lines),
            (Lines{"the fox  12 jumps", "a dog", "15", "a dog 7 over 9"}));
  EXPECT_EQ(statistics.in_parts, 3);
}

TEST_F(TextTranslatorTest, PartsAreNotCountedAsLines) {
  TextRules rules;
  rules.preserve.numbers = true;
  TableScorer table = scorer_of({.drops_digits = true});
  BatchTranslatorOptions options = translator_options(SearchSpec{}, Cpu{&pool});
  options.batching.max_length = 3;
  std::int64_t reported = 0;
  options.on_batch = [&](std::int64_t sentences) { reported += sentences; };
  BatchTranslator plain(table, small_vocabulary(), small_vocabulary(), options);
  TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
  translator.translate(
      Lines{"a dog jumps over it", "the fox 12 jumps over 7 dogs and 9 foxes", ""});
  EXPECT_EQ(statistics.in_parts, 1);
  EXPECT_EQ(plain.statistics().sentences, 2);
  EXPECT_EQ(plain.statistics().source_tokens, 6);
  EXPECT_EQ(plain.statistics().cropped, 2);
  EXPECT_EQ(reported, 3);
}

// A line with digits becomes one piece twelve times, any other a copy.
TEST_F(TextTranslatorTest, AReplacedRepetitionIsNotReported) {
  TextRules rules;
  rules.preserve.numbers = true;
  TableScorer table(small_vocabulary().size(), [](const Ids& source, const Ids& prefix) {
    std::vector<float> logits(small_vocabulary().size(), -5.0f);
    const bool is_stuck = std::any_of(source.begin(), source.end(), is_digit_piece);
    const Ids wanted = is_stuck ? Ids(12, 7) : source;
    logits[prefix.size() < wanted.size() ? wanted[prefix.size()] : 2] = 5.0f;
    return logits;
  });
  BatchTranslatorOptions options = translator_options(SearchSpec{}, Cpu{&pool});
  options.warn_repetitions = true;
  BatchTranslator plain(table, small_vocabulary(), small_vocabulary(), options);
  TextTranslator translator(plain, small_vocabulary(), small_vocabulary(), rules, statistics);
  testing::internal::CaptureStderr();
  const std::vector<LineTranslation> out = translator.translate(Lines{"the fox 12", "a dog"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(out[0].outputs.at(0).text, "the fox 12");
  EXPECT_EQ(out[0].repeated, 0);
  EXPECT_EQ(plain.statistics().repeating, 0);
}

TEST_F(TextTranslatorTest, GlossaryTermsReplaceTheirSources) {
  TextRules rules;
  rules.glossary = Glossary::from_lines({"fox\tFuchs", "dog"}, "test");
  EXPECT_EQ(translate({}, rules, {"the fox jumps over a dog", "a foxes"}),
            (Lines{"the Fuchs jumps over a dog", "a foxes"}));
  EXPECT_EQ(statistics.in_parts, 1);
}

// The table copies its source, so an output shows what the model has read.
TEST_F(TextTranslatorTest, LinesInCapitalsAreReadInSentenceCase) {
  TextRules rules;
  const Lines lines{"the FOX", "THE QUICK FOX", "The Quick Brown Fox Jumps", "A DOG 12 OVER IT"};
  // The vocabulary has no capitals: what the model cannot read is lost.
  EXPECT_NE(translate({}, rules, lines)[1], lines[1]);
  rules.recase = true;
  const Lines found = translate({}, rules, lines);
  EXPECT_NE(found[0], lines[0]);
  // Only the first letter of the sentence is a capital for the model.
  EXPECT_NE(found[1].find("HE QUICK FOX"), std::string::npos) << found[1];
  EXPECT_NE(found[2].find("Quick Brown Fox Jumps"), std::string::npos) << found[2];
  EXPECT_NE(found[3].find("DOG 12 OVER IT"), std::string::npos) << found[3];
  rules.preserve.numbers = true;  // a line with spans stays as it is
  EXPECT_EQ(translate({}, rules, lines)[3].find("DOG"), std::string::npos);
}

TEST_F(TextTranslatorTest, TermsDoNotMatchLinesWhoseCaseChanges) {
  TextRules rules;
  const Lines lines{"A DOG SEES THE BIG FOX", "A Dog Sees The Big Fox"};
  rules.recase = true;
  const Lines plain = translate({}, rules, lines);
  rules.glossary = Glossary::from_lines({"fox\tquick", "dog\tlazy"}, "test");
  EXPECT_EQ(translate({}, rules, lines), plain);
  const std::vector<Lines> found = lists({}, rules, lines);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(found[i].front(), plain[i]);
  EXPECT_EQ(statistics.in_parts, 0);
  // A line with a term as it is written stays in its case, of which the model knows no letter.
  rules.glossary = Glossary::from_lines({"FOX\tquick"}, "test");
  const std::string kept = translate({}, rules, lines)[0];
  EXPECT_EQ(kept.find("DOG"), std::string::npos) << kept;
  EXPECT_NE(kept.find("quick"), std::string::npos) << kept;
}

// In sentence case, "<KEEP>" would be a marker and get lost.
TEST_F(TextTranslatorTest, MarkersInCapitalsAreText) {
  TextRules rules;
  rules.recase = true;
  const Lines line{"A FOX <KEEP>JUMPS</KEEP> OVER IT"};
  const Lines plain = translate({}, rules, line);
  rules.preserve.marked = true;
  EXPECT_EQ(translate({}, rules, line), plain);
}

TEST_F(TextTranslatorTest, AddressesInCapitalsAreKept) {
  TextRules rules;
  rules.recase = rules.preserve.urls = true;
  const std::string found = translate({.drops_digits = true}, rules, {"A FOX AT WWW.A1.ORG"})[0];
  EXPECT_NE(found.find("WWW.A1.ORG"), std::string::npos) << found;
  EXPECT_EQ(statistics.in_parts, 1);
}

TEST_F(TextTranslatorTest, AnotherHypothesisReplacesARepetition) {
  TextRules rules;
  EXPECT_EQ(translate({.echo = 1}, rules, {"fox"}), Lines{"fox fox"});
  rules.repetition_guard = true;
  EXPECT_EQ(translate({.echo = 1}, rules, {"fox", "dog"}), (Lines{"fox", "dog"}));
  EXPECT_EQ(statistics.replaced, 2);
  EXPECT_EQ(statistics.cut, 0);
}

TEST_F(TextTranslatorTest, WithoutAnotherHypothesisTheRepetitionIsCut) {
  TextRules rules;
  rules.repetition_guard = true;
  EXPECT_EQ(translate({.echo = 2, .only_echo = true}, rules, {"fox", "the lazy dog"}),
            (Lines{"fox", "the lazy dog"}));
  EXPECT_EQ(statistics.replaced, 0);
  EXPECT_EQ(statistics.cut, 2);
}

TEST_F(TextTranslatorTest, ListsBeginWithTheTranslation) {
  TextRules rules;
  rules.preserve.numbers = rules.preserve.marked = rules.repetition_guard = rules.recase = true;
  const Lines lines{"the fox  12 jumps", "a dog", "15", "a <keep>dog 7</keep> over 9", "fox", "",
                    "the lazy dog 3"};
  for (const bool only_echo : {false, true})
    for (const bool drops_digits : {false, true})
      for (const int echo : {0, 1, 2}) {
        const Copier copier{drops_digits, echo, only_echo};
        const Lines best = translate(copier, rules, lines);
        const std::vector<Lines> found = lists(copier, rules, lines);
        for (std::size_t i = 0; i < lines.size(); ++i) {
          EXPECT_EQ(found[i].front(), best[i]);
          EXPECT_EQ(std::count(found[i].begin(), found[i].end(), best[i]), 1) << best[i];
        }
      }
}

// The second-best hypothesis has the number that the best one lacks, with other white space.
TEST_F(TextTranslatorTest, ListsBeginWithTheTranslationInParts) {
  TextRules rules;
  rules.preserve.numbers = true;
  const Copier copier{.drops_digits = true, .digits_second = true};
  EXPECT_EQ(translate(copier, rules, {"the fox  12"}), Lines{"the fox  12"});
  const Lines found = lists(copier, rules, {"the fox  12"})[0];
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0], "the fox  12");
  EXPECT_EQ(found[1], "the fox 12");
}

}  // namespace
}  // namespace nmt
