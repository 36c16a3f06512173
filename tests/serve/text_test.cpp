#include "core/rng.h"
#include "serve/document.h"
#include "serve/html.h"
#include "serve/html_text.h"
#include "serve/languages.h"
#include "serve/marked_spans.h"
#include "serve/model_map.h"
#include "serve/model_version.h"
#include "serve/sentences.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt::serve {
namespace {

using Lines = std::vector<std::string>;

Lines sentences(const std::string& text, const char* language = "en", std::size_t most = 500) {
  Lines found;
  std::string joined;
  for (const TextPart& part : split_sentences(text, language, most)) {
    if (part.translate) found.push_back(part.text);
    joined += part.text;
  }
  EXPECT_EQ(joined, text);
  return found;
}

TEST(Sentences, AreCutAndRestored) {
  EXPECT_EQ(sentences("One. Two!  Three?\n\n- Four\r\n\tFive: six."),
            (Lines{"One.", "Two!", "Three?", "- Four", "Five: six."}));
  EXPECT_EQ(sentences("\u4f60\u597d\u3002\u518d\u89c1\u3002", "zh"),
            (Lines{"\u4f60\u597d\u3002", "\u518d\u89c1\u3002"}));
  EXPECT_EQ(sentences("a\u2028b\u0085c\rd"), (Lines{"a", "b", "c", "d"}));
}

TEST(Sentences, AbbreviationsOfTheLanguageEndNone) {
  EXPECT_EQ(sentences("Mr. Smith met Dr. Jones. They talked."),
            (Lines{"Mr. Smith met Dr. Jones.", "They talked."}));
  EXPECT_EQ(sentences("Dr.\u00a0Smith is here. [Dr. Who] came. \u201cMr. Bean\u201d too."),
            (Lines{"Dr.\u00a0Smith is here.", "[Dr. Who] came.", "\u201cMr. Bean\u201d too."}));
  EXPECT_EQ(sentences("\u0410. \u0421. \u041f\u0443\u0448\u043a\u0438\u043d "
                      "\u0440\u043e\u0434\u0438\u043b\u0441\u044f. "
                      "\u041e\u043d \u0431\u0435\u0436\u0438\u0442.",
                      "ru"),
            (Lines{"\u0410. \u0421. \u041f\u0443\u0448\u043a\u0438\u043d "
                   "\u0440\u043e\u0434\u0438\u043b\u0441\u044f.",
                   "\u041e\u043d \u0431\u0435\u0436\u0438\u0442."}));
  EXPECT_EQ(sentences("\u00c9. Zola sleeps. \u4e2d. He runs.", "fr"),
            (Lines{"\u00c9. Zola sleeps.", "\u4e2d.", "He runs."}));
  EXPECT_EQ(sentences("Es gibt z.B. Dr. Maier. Und dann?", "de"),
            (Lines{"Es gibt z.B. Dr. Maier.", "Und dann?"}));
}

TEST(Sentences, TextWithoutWordsIsNone) {
  for (const char* text : {"", " ", "\n\n", "---\n***", "\u00a0\u3000", "!!! ..."})
    EXPECT_EQ(sentences(text), Lines{}) << text;
}

TEST(Sentences, LongOnesAreSplitAtWhiteSpace) {
  EXPECT_EQ(sentences("aaa bbb ccc ddd", "en", 8), (Lines{"aaa bbb", "ccc ddd"}));
  EXPECT_EQ(sentences("aaaaaaaaaaaa", "en", 5), (Lines{"aaaaa", "aaaaa", "aa"}));
  for (const std::string& part : sentences(std::string(1000, 'x') + " y", "en", 100))
    EXPECT_LE(part.size(), 100u);
}

TEST(Sentences, SpansAreNotSplit) {
  for (const std::string& part : {std::string("a"), std::string("\u00e9")}) {
    std::string url = "http://example.org/";
    for (int i = 0; i < 5000; ++i) url += part;
    const Lines all = sentences("See " + url + " now.", "en", 50);
    EXPECT_EQ(std::count(all.begin(), all.end(), url), 1);
  }
  EXPECT_EQ(sentences("See https://a.org/b?C=d. {{A? B}} or a.B@c.org? Yes."),
            (Lines{"See https://a.org/b?C=d.", "{{A? B}} or a.B@c.org?", "Yes."}));
  const std::string url = "https://a.org/" + std::string(100, 'x');
  EXPECT_EQ(sentences("see " + url + " now", "en", 20), (Lines{"see", url, "now"}));
}

TEST(Sentences, LongOnesAreNotSplitWithinSpans) {
  EXPECT_EQ(sentences("Two men in a small park {{ name }} walk with a dog.", "en", 30),
            (Lines{"Two men in a small park", "{{ name }} walk with a dog."}));
  EXPECT_EQ(sentences("a %(two words)s b", "en", 8), (Lines{"a", "%(two words)s", "b"}));
  EXPECT_EQ(sentences("{{ a b }} {{ c d }}", "en", 3), (Lines{"{{ a b }}", "{{ c d }}"}));
  EXPECT_EQ(sentences("One is. Now {{ a b }} is two. {{ c d }} too", "en", 14),
            (Lines{"One is.", "Now {{ a b }}", "is two.", "{{ c d }} too"}));
}

TEST(Sentences, AnyTextIsRestored) {
  const Lines parts{" ",      "\n", "\r\n", "a",      "Ab. ",   "!",      "?\" ", "\u00e4",
                    "\u2028", "12", ".",    "\u4f60", "\u3002", "\u00a0", "<b>",  "\U0001F600"};
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::uint64_t k = rng.below(30); k > 0; --k) text += parts[rng.below(parts.size())];
    sentences(text, "en", 1 + rng.below(20));
  }
}

Lines html_texts(const std::string& html) {
  Lines texts;
  std::string joined;
  for (const HtmlPart& part : split_html(html)) {
    joined += part.source;
    if (part.is_text) texts.push_back(part.source);
  }
  EXPECT_EQ(joined, html);
  return texts;
}

TEST(Html, TagsAreNoText) {
  EXPECT_EQ(html_texts("<p class='a>b'>Hi <b>you</b>!</p><!-- no <b> --><br/>x"),
            (Lines{"Hi ", "you", "!", "x"}));
  EXPECT_EQ(html_texts("<div><div><p>a</p></div>b<span>c</span></div>"), (Lines{"a", "b", "c"}));
  EXPECT_EQ(html_texts("<!DOCTYPE html><?xml?><![CDATA[<p>]]>t"), (Lines{"t"}));
  EXPECT_EQ(html_texts("a<!-- x --!>b<!-- -- > --->c<!----d"), (Lines{"a", "b", "c"}));
}

TEST(Html, WhatNoReaderSeesIsNoText) {
  EXPECT_EQ(html_texts("a<script>if (a<b) '</p>'</script>b<style>c</style>"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("a<script><!-- </scripts> </ script> < /script> </style></SCRIPT\n>b"),
            (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("a<style></style/x='>'>b<style></style x>c"), (Lines{"a", "b", "c"}));
  EXPECT_EQ(html_texts("a<code>x<code>y</code>z</code>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<div translate=no><script>'</div><div>'</script>x</div>a"), (Lines{"a"}));
  EXPECT_EQ(html_texts("<a translate=no href=x/>x</a>a<code class=x/>x</code>b<code/>c"),
            (Lines{"a", "b", "c"}));
  EXPECT_EQ(html_texts("a<div translate=\"no\">x<div>y</div>z</div>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("a<i class='x notranslate'>x</i>b<i class=notranslated>c</i>"),
            (Lines{"a", "b", "c"}));
}

TEST(Html, EndTagsMayBeMissing) {
  EXPECT_EQ(html_texts("<p translate=no>x<p>a"), (Lines{"a"}));
  EXPECT_EQ(html_texts("<p translate=no>x <b>y</p>a"), (Lines{"a"}));
  EXPECT_EQ(html_texts("<div><p translate=no>x</i>y</div>a"), (Lines{"a"}));
  EXPECT_EQ(html_texts("<ul><li translate=no>x<ul><li>y<li>z</ul>z<li>a</ul>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<ul><li translate=no>x<p>y<li>a</ul>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<ul><li translate=no>x</ul>b"), (Lines{"b"}));
  EXPECT_EQ(html_texts("<dl><dt translate=no>x<dd>a<dt>b</dl>"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<dl><div><dt>a<dd translate=no>x<div>y</div>x</div><div><dt>b<dd>c</dl>"),
            (Lines{"a", "b", "c"}));
  EXPECT_EQ(html_texts("<ul><li translate=no>x<b>y<li>a</ul>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<p translate=no>x<a>y<p>a</p>b"), (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<table><tr><td translate=no>x<table><tr><td>y</table>y<td>a<tr>"
                       "<td class=notranslate>x<script>'</table>'</script></table>b"),
            (Lines{"a", "b"}));
  EXPECT_EQ(html_texts("<select><option translate=no>x<option>a</select>"), (Lines{"a"}));
  EXPECT_EQ(html_texts("a<!-->b<!--->c<!-- -->d"), (Lines{"a", "b", "c", "d"}));
}

TEST(Html, BrokenHtmlIsKept) {
  EXPECT_EQ(html_texts("1 < 2 and 3 > 2"), (Lines{"1 < 2 and 3 > 2"}));
  EXPECT_EQ(html_texts("a <b"), (Lines{"a <b"}));
  EXPECT_EQ(html_texts("a<b c='>x"), (Lines{"a"}));
  EXPECT_EQ(html_texts("a<!-- b"), (Lines{"a"}));
  EXPECT_EQ(html_texts("a<code>b"), (Lines{"a"}));
  EXPECT_EQ(html_texts("a<script>b<i></scrip></script"), (Lines{"a"}));
  EXPECT_EQ(html_texts("a<script>b<i></script c"), (Lines{"a"}));
  EXPECT_EQ(html_texts("</b>a</"), (Lines{"a</"}));
}

TEST(Html, HostileHtmlIsQuick) {
  using Clock = std::chrono::steady_clock;
  for (const std::string begin : {"", "<script>", "<style>", "<code>", "<p translate=no>"})
    for (const char* part : {"<a b='", "<code>", "<", "</", "<!--", "<a", "<a ", "<a x", "<script>",
                             "</script", "</s", "<p class=notranslate>", "<b></i>", "&#1"}) {
      std::string html = begin;
      while (html.size() < 300'000) html += part;
      html += "'>";
      const Clock::time_point start = Clock::now();
      std::string joined;
      for (const HtmlPart& p : split_html(html)) joined += p.source;
      EXPECT_EQ(joined, html);
      decode_html(html);
      // Milliseconds; half a minute where every "<" is read to the end.
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(5)) << begin << part;
    }
}

TEST(Html, References) {
  EXPECT_EQ(decode_html("a&#10;b&#x9;c&#13;d"), "a\nb\tc\rd");
  EXPECT_EQ(decode_html("&#150;&#x80;&#129;&#0;&#127;&#55296;"), "–€&#129;&#0;&#127;&#55296;");
  EXPECT_EQ(decode_html("a &lt; b &amp;&#65;&#x42; &eacute;&nbsp;&unknown; & &#0; &"),
            "a < b &AB \u00e9\u00a0&unknown; & &#0; &");
  EXPECT_EQ(encode_html("a < b & c\u00a0> &unknown; &amp;", {"&unknown;"}),
            "a &lt; b &amp; c&nbsp;&gt; &unknown; &amp;amp;");
}

TEST(Html, ReferencesSurviveTheRoundTrip) {
  const auto again = [](const std::string& html) {
    HtmlReferences unresolved;
    const std::string text = decode_html(html, &unresolved);
    const std::string encoded = encode_html(text, unresolved);
    EXPECT_EQ(decode_html(encoded), text) << html;
    return encoded;
  };
  for (const char* html :
       {"&amp;rarr;", "&rarr;", "&#0; &#127; &#xD800; &#X0;", "&amp;#0;", "&lt;&amp;amp;&gt;&nbsp;",
        "&CounterClockwiseContourIntegral;", "&amp;CounterClockwiseContourIntegral;"})
    EXPECT_EQ(again(html), html);
  EXPECT_EQ(again("a & b &; &#; &#x; &1; &rarr"),
            "a &amp; b &amp;; &amp;#; &amp;#x; &amp;1; &amp;rarr");
}

std::string upper(const Document& document) {
  std::vector<Hypotheses> translations;
  for (std::string text : document.sentences()) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    translations.push_back({text});
  }
  return document.join(translations, 0);
}

TEST(Document, TextAroundSentencesStays) {
  EXPECT_EQ(upper(Document(" one. two.\n\n three\t", TextFormat::text, "en", 500)),
            " ONE. TWO.\n\n THREE\t");
  EXPECT_EQ(upper(Document("", TextFormat::text, "en", 500)), "");
  EXPECT_EQ(upper(Document("<p>one &amp; <b> two</b></p>\n<code>three</code>", TextFormat::html,
                           "en", 500)),
            "<p>ONE &amp; <b> TWO</b></p>\n<code>three</code>");
}

TEST(Document, ReferencesOfHtmlStay) {
  const std::string html =
      "<p>1 &amp;#0; 2 &rarr; &amp;</p>a &#0; &rarr;. B. &rarr;<b>&amp;rarr; c";
  const Document document(html, TextFormat::html, "en", 500);
  std::vector<Hypotheses> same;
  for (const std::string& sentence : document.sentences()) same.push_back({sentence});
  EXPECT_EQ(document.join(same, 0), html);
}

TEST(Document, LineEndsWithinHtmlTextAreSpaces) {
  const auto sentences = [](const char* html) {
    return Document(html, TextFormat::html, "en", 500).sentences();
  };
  EXPECT_EQ(sentences("<p>\n  The lamp\r\n\t is&#32;red\rtoday. It\n  glows.\n</p>"),
            (Lines{"The lamp is red today.", "It glows."}));
  EXPECT_EQ(sentences("One\n \n two\n\nthree\fx"), (Lines{"One", "two", "three\fx"}));
  EXPECT_EQ(sentences("<pre>a b\n<b>c\nd</b></pre>e\nf<textarea>g\nh</textarea></pre>i\nj"),
            (Lines{"a b", "c", "d", "e f", "g", "h", "i j"}));
  EXPECT_EQ(sentences("<pre translate=no>a\nb</pre>c\nd"), (Lines{"c d"}));
  EXPECT_EQ(upper(Document("<p>\n  one\n  two. \n\n three\n</p>", TextFormat::html, "en", 500)),
            "<p>\n  ONE TWO. \n\n THREE\n</p>");
}

TEST(Document, MarkedSpansStayWhole) {
  const Document document("See <keep>A. B! \nC?</keep> now. Then.", TextFormat::text, "en", 500);
  EXPECT_EQ(document.sentences(), (Lines{"See <keep>A. B! \nC?</keep> now.", "Then."}));
  EXPECT_EQ(Document("a <keep> b. C.", TextFormat::text, "en", 500).sentences(),
            (Lines{"a <keep> b.", "C."}));
  EXPECT_EQ(Document("See <keep>A. B!</keep> now.", TextFormat::text, "en", 500, false).sentences(),
            (Lines{"See <keep>A.", "B!", "</keep> now."}));
}

TEST(Document, MarkersInHtmlTextAreText) {
  const std::string html =
      "<p>see &lt;keep&gt; two &amp; a&lt;/keep&gt; now&lt;keep&gt;b&lt;/keep&gt;</p>"
      "&lt;keep&gt;&lt;/keep&gt; c &lt;keep&gt; d";
  const Document document(html, TextFormat::html, "en", 500);
  EXPECT_EQ(document.sentences(), (Lines{"see", "two & a", "now", "b", "c <keep> d"}));
  EXPECT_EQ(upper(document),
            "<p>SEE &lt;keep&gt; TWO &amp; A&lt;/keep&gt; NOW&lt;keep&gt;B&lt;/keep&gt;</p>"
            "&lt;keep&gt;&lt;/keep&gt; C &lt;KEEP&gt; D");
  EXPECT_EQ(
      Document("see &lt;keep&gt;a&lt;/keep&gt;", TextFormat::html, "en", 500, false).sentences(),
      Lines{"see <keep>a</keep>"});
}

TEST(MarkedSpans, GetTheirMarkersAgain) {
  EXPECT_EQ(with_markers("see <keep>Zx qQ</keep> now", "jetzt Zx qQ sehen"),
            "jetzt <keep>Zx qQ</keep> sehen");
  // As often as in the sentence, whole words and longer texts first.
  EXPECT_EQ(with_markers("<keep>a</keep> <keep>a b</keep> <keep>a</keep>", "ab a a b a a"),
            "ab <keep>a</keep> <keep>a b</keep> <keep>a</keep> a");
  EXPECT_EQ(with_markers("<keep>iPhone</keep>s are", "iPhonesind"), "<keep>iPhone</keep>sind");
  EXPECT_EQ(with_markers("<keep>a</keep> b<keep>a</keep>c", "xay a"),
            "x<keep>a</keep>y <keep>a</keep>");
  EXPECT_EQ(with_markers("<keep>x</keep>", "y"), "y");
  EXPECT_EQ(with_markers("a b", "a b"), "a b");
  EXPECT_EQ(with_markers("a <keep></keep>b", "a b"), "a b");
  EXPECT_EQ(with_markers("<keep>a <keep> b</keep>", "a <keep> b c"), "<keep>a <keep> b</keep> c");
}

// With these markers, other text than that of the span would be marked.
TEST(MarkedSpans, GetNoMarkersBesideThoseOfTheTranslation) {
  for (const char* text : {"<keep> z a", "<keep>b</keep> a"})
    EXPECT_EQ(with_markers("<keep>a</keep> y <keep> z", text), text);
}

TEST(Document, TextBehindALongMarkedSpanIsASentence) {
  std::string span = "A man <keep>";
  for (int i = 0; i < 300; ++i) span += "word ";
  span += "</keep>";
  const auto pieces = [&](const std::string& rest) {
    Lines found;
    const Document document(span + rest, TextFormat::text, "en", 500);
    std::size_t next = 0;
    for (const Document::Piece& piece : document.pieces())
      found.push_back(piece.sentence ? "+" + document.sentences()[next++] : piece.text);
    EXPECT_EQ(found.front(), "+" + span);
    return Lines(found.begin() + 1, found.end());
  };
  EXPECT_EQ(pieces(" and then more words."), (Lines{" ", "+and then more words."}));
  EXPECT_EQ(pieces(". The dog."), (Lines{". ", "+The dog."}));
  EXPECT_EQ(pieces(" !"), Lines{" !"});
  EXPECT_EQ(pieces(" a <keep>b. C</keep>."), (Lines{" ", "+a <keep>b. C</keep>."}));
}

// A part that closes one span and opens the next one would otherwise join the whole text.
TEST(Document, ChainsOfMarkedSpansAreSentencesOfBoundedLength) {
  std::string text = "<keep>A. ";
  for (int i = 0; i < 1000; ++i) text += "B</keep> girl <keep>A. ";
  text += "B</keep>";
  const Document document(text, TextFormat::text, "en", 100);
  EXPECT_GT(document.sentences().size(), 100u);
  for (const std::string& sentence : document.sentences()) EXPECT_LT(sentence.size(), 150u);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  EXPECT_EQ(upper(document), text);
}

TEST(Document, AlternativesFallBackToTheBest) {
  const Document document("One. Two.", TextFormat::text, "en", 500);
  const std::vector<Hypotheses> translations{{"a", "b"}, {"c"}};
  EXPECT_EQ(document.join(translations, 1), "b c");
}

TEST(Languages, Directions) {
  Direction direction;
  EXPECT_TRUE(parse_direction("en-de", direction));
  EXPECT_EQ(direction, (Direction{"en", "de"}));
  EXPECT_TRUE(parse_direction("pt-BR_en", direction));
  EXPECT_EQ(direction, (Direction{"pt-BR", "en"}));
  for (const char* text : {"", "en", "en-en", "a-b", "en-de-fr", "../x-de", "-", "_"})
    EXPECT_FALSE(parse_direction(text, direction)) << text;
  EXPECT_EQ(language_name("de"), "German");
}

TEST(Languages, Detection) {
  if (!can_detect()) GTEST_SKIP() << "built without a detector";
  const Lines known{"de", "en", "fr"};
  EXPECT_EQ(detect_language("This is certainly an English sentence.", known).front().language,
            "en");
  EXPECT_EQ(detect_language("Das ist ganz sicher ein deutscher Satz.", known).front().language,
            "de");
  EXPECT_EQ(
      detect_language("\u05d6\u05d4 \u05de\u05e9\u05e4\u05d8 \u05d1\u05e2\u05d1\u05e8\u05d9\u05ea.",
                      {"de", "he"})
          .front()
          .language,
      "he");
  const auto none = detect_language("1234", known);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none.front().confidence, 0.0);
}

TEST(Languages, DetectionPrefersTheExactCode) {
  if (!can_detect()) GTEST_SKIP() << "built without a detector";
  const std::string traditional =
      "\u9019\u662f\u4e00\u500b\u7528\u7e41\u9ad4\u4e2d\u6587\u5beb\u7684\u53e5\u5b50\uff0c"
      "\u6211\u5011\u8aaa\u8a71\u6642\u6703\u9ede\u982d\u3002";
  const std::string simplified =
      "\u8fd9\u662f\u4e00\u4e2a\u7528\u7b80\u4f53\u4e2d\u6587\u5199\u7684\u53e5\u5b50\uff0c"
      "\u6211\u4eec\u8bf4\u8bdd\u65f6\u4f1a\u70b9\u5934\u3002";
  for (const Lines& known : {Lines{"en", "zh", "zh-Hant"}, Lines{"en", "zh-Hant", "zh"}}) {
    EXPECT_EQ(detect_language(traditional, known).front().language, "zh-Hant");
    EXPECT_EQ(detect_language(simplified, known).front().language, "zh");
  }
  EXPECT_EQ(detect_language(traditional, {"en", "zh"}).front().language, "zh");
  EXPECT_EQ(detect_language(simplified, {"en", "zh-Hant"}).front().language, "zh-Hant");
}

TEST(Languages, DetectionListsALanguageOnce) {
  if (!can_detect()) GTEST_SKIP() << "built without a detector";
  const std::string text =
      "\u6211\u4eec\u6628\u5929\u5728\u57ce\u91cc\u7684\u56fe\u4e66\u9986\u89c1\u9762\u3002"
      "\u4ed6\u4eec\u8bf4\u8fd9\u4e2a\u95ee\u9898\u5f88\u96be\u89e3\u51b3\u3002\u540e\u6765"
      "\u5927\u5bb6\u4e00\u8d77\u53bb\u5403\u996d\uff0c\u8fd8\u8c08\u4e86\u5f88\u591a\u5173"
      "\u4e8e\u5b66\u4e60\u548c\u5de5\u4f5c\u7684\u4e8b\u60c5\u3002"
      "\n"
      "\u9019\u500b\u9031\u672b\u6211\u5011\u6253\u7b97\u53bb\u722c\u5c71\u3002\u8001\u5e2b"
      "\u8aaa\u5929\u6c23\u6703\u8b8a\u51b7\uff0c\u6240\u4ee5\u8acb\u5927\u5bb6\u591a\u5e36"
      "\u5e7e\u4ef6\u8863\u670d\u3002\u807d\u8aaa\u90a3\u88e1\u7684\u98a8\u666f\u975e\u5e38"
      "\u6f02\u4eae\uff0c\u9084\u6709\u8a31\u591a\u9ce5\u985e\u3002"
      "\nThis is certainly an English sentence. Nobody doubts that the second one is written in "
      "English, too.\n";
  const std::vector<Detection> apart = detect_language(text, {"en", "zh", "zh-Hant"});
  ASSERT_EQ(apart.size(), 3u);
  double chinese = 0;
  for (const Detection& each : apart)
    if (each.language != "en") chinese += each.confidence;
  const std::vector<Detection> together = detect_language(text, {"en", "zh"});
  ASSERT_EQ(together.size(), 2u);
  for (const Detection& each : together)
    EXPECT_EQ(each.language == "zh" ? each.confidence : chinese, chinese);
  EXPECT_GE(together[0].confidence, together[1].confidence);
}

TEST(ModelMap, RoutesGoThroughOneMoreLanguageAtMost) {
  const ModelMap map({{0, {"de", "en"}, "a"}, {1, {"en", "fr"}, "b"}, {2, {"fr", "es"}, "c"}});
  EXPECT_EQ(map.route("de", "en"), std::vector<int>{0});
  EXPECT_EQ(map.route("de", "fr"), (std::vector<int>{0, 1}));
  EXPECT_EQ(map.route("de", "es"), std::vector<int>{});
  EXPECT_EQ(map.route("en", "de"), std::vector<int>{});
  EXPECT_EQ(map.languages(), (Lines{"de", "en", "es", "fr"}));
  EXPECT_EQ(map.sources(), (Lines{"de", "en", "fr"}));
  EXPECT_EQ(map.targets("de"), (Lines{"de", "en", "fr"}));
  EXPECT_EQ(map.targets("es"), Lines{"es"});
  EXPECT_EQ(map.targets("xx"), Lines{});
}

TEST(ModelMap, TargetsAreThoseOfRoutes) {
  const ModelMap map({{0, {"a", "b"}, ""},
                      {1, {"b", "c"}, ""},
                      {2, {"c", "a"}, ""},
                      {3, {"c", "d"}, ""},
                      {4, {"d", "e"}, ""}});
  for (const std::string& source : map.languages()) {
    Lines routed;
    for (const std::string& target : map.languages())
      if (target == source || !map.route(source, target).empty()) routed.push_back(target);
    EXPECT_EQ(map.targets(source), routed) << source;
  }
}

TEST(ModelVersion, NoticesFilesOfTheSameSize) {
  namespace fs = std::filesystem;
  const fs::path folder = testing::TempDir() + "nmt_version_" + std::to_string(::getpid());
  fs::create_directories(folder);
  const auto write = [&](const char* name) { std::ofstream(folder / name) << "x"; };
  write("config.json");
  std::string before = version_of(folder.string());
  for (const char* name : {"shortlist.bin", "model.safetensors", "a.spm"}) {
    write(name);
    const std::string added = version_of(folder.string());
    EXPECT_NE(added, before) << name;
    fs::last_write_time(folder / name,
                        fs::last_write_time(folder / name) + std::chrono::seconds(1));
    before = version_of(folder.string());
    EXPECT_NE(added, before) << name;
  }
  write(".tmp-model-1-0");
  EXPECT_EQ(version_of(folder.string()), before);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace nmt::serve
