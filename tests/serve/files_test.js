// The readers of the web page for files (src/http/web): what is translated, and that the rest stays
// byte by byte. Run by node; test_page.py has the page in a browser.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

// The scripts in the order of the page, up to the one that reads files.
const folder = path.join(__dirname, "../../src/http/web");
const scriptText = (name) => fs.readFileSync(path.join(folder, name), "utf8");
const scripts = [...scriptText("index.html").matchAll(/<script src="ui\/(.*?)"/g)].map((a) => a[1]);
const sources = scripts.slice(0, scripts.indexOf("files.js") + 1).map(scriptText);
const Files = new Function(`${sources.join("")}\nreturn Files;`)();

function translated(name, text) {
  const file = Files.read(name, text);
  const texts = file.pieces.filter((piece) => piece.translate).map((piece) => piece.text);
  assert.strictEqual(file.join(texts), text);
  return texts;
}
const markdown = (text, expected) =>
    assert.deepStrictEqual(translated("a.md", text), expected, text);

// Front matter ends; a rule in the first line is none (as in pandoc).
markdown("---\ntitle: x\n---\nText\n", ["Text"]);
markdown("---\r\ntitle: x\r\n...\r\nText", ["Text"]);
markdown("---\n\nThe rule.\n\n---\n\nText\n", ["The rule.", "Text"]);
markdown("---\nText without an end.\n", ["Text without an end."]);

// Fences end at their own characters, as many or more, without other text, or with their quote.
markdown("````md\n```js\none\n```\ntwo\n````\nText\n", ["Text"]);
markdown("```js\none\n``` x\ntwo\n~~~\nthree\n````\nText\n", ["Text"]);
markdown("```no fence``` here\nText\n", [" here", "Text"]);
markdown("> ```\n> one\n\nText\n", ["Text"]);

// Indented code begins behind a blank line, and lists have none.
markdown(
    "- item\n    - nested\n\n    its paragraph\n\nText\n",
    ["item", "nested", "its paragraph", "Text"]);
markdown("Text\n\n    one\n\n\ttwo\nmore\n    of it\n", ["Text", "more", "of it"]);

// Markup within a line.
markdown(
    "# The *red* lamp and `code`, [here](https://a.org/x)\n",
    ["The ", "red", " lamp and ", "here"]);
markdown("``x ` foo`` then `bar` and `open\nText\n", [" then ", " and `open", "Text"]);
markdown("The `code\nspan` ends\n\n`open\n\nText`\n", ["The ", " ends", "`open", "Text`"]);
markdown("[Lamp](https://a.org/Lamp_(red)) is\n", ["Lamp", " is"]);
markdown("Text[^note].\n\n[^note]: The note.\n", ["Text", "The note."]);
markdown(
    "See [the lamp], [the Lamp][] or [a lamp][the lamp].\n\n[the lamp]: https://a.org\n",
    ["See ", " or ", "a lamp"]);
markdown("See [a dog].\n", ["See ", "a dog"]);
markdown("- Use ` for\n- And ` for\n", ["Use ` for", "And ` for"]);
markdown("# A ` b\nText\nand ` more\n", ["A ` b", "Text", "and ` more"]);
markdown("<pre>\nThe lamp\n</pre>\nText\n", ["Text"]);
markdown("<pre>\nThe lamp\n\n    is }</pre>\n<style>\n```\n</style>\nText\n", ["Text"]);
markdown("| the | lamp |\n|---|:-:|\n[1]: https://a.org\n", [" the ", " lamp "]);

// Only punctuation is escaped, and a "<" without the name of a tag is text.
markdown("if x < 5 and y > 3, stop\n", ["if x < 5 and y > 3, stop"]);
markdown("Open C:\\temp\\new files \\*.\n", ["Open C:\\temp\\new files "]);
markdown("A <b>c</b> <https://a.org> <1@a.org> d <!-- <i>e</i> --> f\n", ["A ", "c", " d ", " f"]);

// Comments and tags over several lines, and such without an end.
markdown("<!-- The\n\nred\n```\nlamp --> is on\nText\n", [" is on", "Text"]);
markdown("<!--\nThe lamp\n-->\n<?php\nred\n\n?>\n<![CDATA[\na\n]]>Text\n", ["Text"]);
markdown("The <!-- red\nlamp --> is on\n", ["The ", " is on"]);
markdown("The <!-- red\n\nlamp --> is on\n", ["The <!-- red", "lamp --> is on"]);
markdown("See <img\n  src='a.png'\n  alt='The lamp'> here\n", ["See ", " here"]);
markdown("<img\n  alt='a'\n>\n</p\n>Text\n", ["Text"]);
markdown("> The <img\n> alt='a'> lamp\n> a <b\n> c\n", ["The ", " lamp", "a <b", "c"]);
markdown("a <b\nc < d > e\n- f <g\n- h > i\n\n> j\n", ["a <b", "c < d > e", "f <g", "h > i", "j"]);
markdown("<!--> a <!---> b\n", [" a ", " b"]);
markdown("Text\n\n<!-- The lamp\n\nis red\n", ["Text"]);
markdown("```\n<!--\n```\nText\n    <!-- c\n", ["Text", "<!-- c"]);

// The time is linear, and nothing is lost.
const hostile = [
  "<", "<a ", "<a\n", "> <a\n", "<!", "<!--", "a <!-- b\n", "<?", "<@", "![", "[^", "[", "[a]: b\n",
  "](", "](a)(", "](()", "`a``", "a`\n", "\\", '\\"', "{\\", "*_", " ", "> ", ">", "1. ", "<pre>\n",
];
const withoutSpace = (text) => text.replace(/\s/g, "");
for (const part of hostile) {
  const long = part.repeat(200_000 / part.length);
  const line = long.replace(/\n/g, " ");
  const files = {
    "a.md": `${long}x`,
    "a.txt": long,
    "a.srt": `0:00:01,0 --> 0:00:02,0\n${line}x\n${line}`,
    "a.po": `msgid "${line}x"\nmsgid_plural "${long}x"`,
  };
  for (const [name, text] of Object.entries(files)) {
    const start = performance.now();
    const file = Files.read(name, text);
    const texts = file.pieces.filter((piece) => piece.translate).map((piece) => piece.text);
    assert.strictEqual(withoutSpace(file.join(texts)), withoutSpace(text), `${name}: ${part}`);
    assert.ok(performance.now() - start < 5000, `${name}: ${part}`); // milliseconds
  }
}

// A byte order mark and the kinds of line ends stay.
assert.deepStrictEqual(translated("a.md", "\ufeff---\na: b\n---\nText"), ["Text"]);
assert.deepStrictEqual(translated("a.txt", "\ufeffa\r\nb\rc\n"), ["a", "b", "c"]);
assert.throws(() => Files.read("a.constructor", ""), /expected a file ending in/);

// Escapes of messages, and untranslated ones alone.
assert.deepStrictEqual(
    Files.read("a.po", 'msgid "a \\\\\\"b\\"\\n"\n"c\\\\n"\nmsgstr ""\n\nmsgid "d"\nmsgstr "e"\n')
        .pieces.map((piece) => piece.text),
    ['a \\"b"\nc\\n']);
const messages = Files.read("a.po", 'msgid "a"\r\nmsgstr ""\r\n');
assert.strictEqual(
    messages.join(['x\n"y\\']), 'msgid "a"\r\nmsgstr ""\r\n"x\\n"\r\n"\\"y\\\\"\r\n');

assert.strictEqual(
    Files.read("a.po", 'msgid "a"\n\nmsgid "b"\r\nmsgstr ""\r""\n\nmsgid "c"\r\nmsgstr ""').join(
        ["x\ny", "z\n1"]),
    'msgid "a"\n\nmsgid "b"\r\nmsgstr ""\r"x\\n"\r"y"\n\nmsgid "c"\r\nmsgstr ""\r\n"z\\n"\r\n"1"');
const escapes = String.raw`"\\033 \033[1mred\033[0m\a \x41\b lamp\n"`;
const escaped = Files.read("a.po", `msgid ${escapes}\nmsgstr ""\n`);
assert.strictEqual(escaped.join(["red", "\b lamp\n"]), `msgid ${escapes}\nmsgstr ${escapes}\n`);
assert.deepStrictEqual(
    escaped.pieces.filter((piece) => piece.translate).map((piece) => piece.text),
    ["red", "\b lamp\n"]);

// Subtitles: the lines of a cue are one text, and stay as many.
assert.deepStrictEqual(
    translated("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nthe lamp\nis red\n\n"),
    ["the lamp is red"]);
const time = "00:00:01,000 --> 00:00:02,000";
const subtitles = (cue, expected, translations, result) => {
  const file = Files.read("a.srt", `${time}\n${cue}`);
  const texts = file.pieces.filter((piece) => piece.translate).map((piece) => piece.text);
  assert.deepStrictEqual(texts, expected, cue);
  assert.strictEqual(file.join(translations), `${time}\n${result}`, cue);
};
subtitles(
    '<font color="red">a\r\nlamp</font>\n', ["a lamp"], ["die Lampe"],
    '<font color="red">die\r\nLampe</font>\n');
subtitles("- 1 -\n2 3 4\r\n\n12\n", [], [], "- 1 -\n2 3 4\r\n\n12\n");
subtitles("a\rb\r\nc < d", ["a b c < d"], ["x"], "x");
subtitles("a\rb\r\nc < d", ["a b c < d"], ["x y"], "x\ry");
subtitles("a\n", ["a"], [""], "");

assert.throws(() => Files.read("a.docx", ""), /expected a file ending in/);

// The language of a file is detected once; a guess (confidence 0) does not count.
async function askedSources(detections) {
  const sources = [];
  const call = async (address, fields) => {
    sources.push(fields.source);
    const { confidence, language } = detections[sources.length - 1];
    return {
      translatedText: fields.q.map((text) => text.toUpperCase()),
      ...(fields.source === "auto" && { detectedLanguage: [{ confidence, language }] })
    };
  };
  const counts = [];
  const translations = await Files.translate(
      [["a", "b"], ["c"], ["d"]], { source: "auto", target: "de" }, call,
      (count) => counts.push(count));
  assert.deepStrictEqual(translations, ["A", "B", "C", "D"]);
  assert.deepStrictEqual(counts, [2, 3, 4]);
  return sources;
}
(async () => {
  const en = { confidence: 90, language: "en" };
  const guess = { confidence: 0, language: "fr" };
  assert.deepStrictEqual(await askedSources([en, guess, guess]), ["auto", "en", "en"]);
  assert.deepStrictEqual(await askedSources([guess, en, guess]), ["auto", "auto", "en"]);
})();
