// The readers of the web page for files (src/server/web/files.js): what is translated, and that the
// rest stays byte by byte. Run by node; test_page.py has the page in a browser.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const source = path.join(__dirname, "../../src/server/web/files.js");
const Files = new Function(`${fs.readFileSync(source, "utf8")}\nreturn Files;`)();

function translated(name, text) {
  const file = Files.read(name, text);
  const texts = file.pieces.filter((piece) => piece.translate).map((piece) => piece.text);
  assert.strictEqual(file.join(texts), text);
  return texts;
}
const markdown = (text, expected) => assert.deepStrictEqual(translated("a.md", text), expected, text);

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
markdown("- item\n    - nested\n\n    its paragraph\n\nText\n", ["item", "nested", "its paragraph", "Text"]);
markdown("Text\n\n    one\n\n\ttwo\nmore\n    of it\n", ["Text", "more", "of it"]);

// Markup within a line.
markdown("# The *red* lamp and `code`, [here](https://a.org/x)\n", ["The ", "red", " lamp and ", "here"]);
markdown("``x ` foo`` then `bar` and `open\nText\n", [" then ", " and `open", "Text"]);
markdown("The `code\nspan` ends\n\n`open\n\nText`\n", ["The ", " ends", "`open", "Text`"]);
markdown("[Lamp](https://a.org/Lamp_(red)) is\n", ["Lamp", " is"]);
markdown("Text[^note].\n\n[^note]: The note.\n", ["Text", "The note."]);
markdown("See [the lamp], [the Lamp][] or [a lamp][the lamp].\n\n[the lamp]: https://a.org\n", ["See ", " or ", "a lamp"]);
markdown("See [a dog].\n", ["See ", "a dog"]);
markdown("- Use ` for\n- And ` for\n", ["Use ` for", "And ` for"]);
markdown("# A ` b\nText\nand ` more\n", ["A ` b", "Text", "and ` more"]);
markdown("<pre>\nThe lamp\n</pre>\nText\n", ["Text"]);
markdown("<pre>\nThe lamp\n\n    is }</pre>\n<style>\n```\n</style>\nText\n", ["Text"]);
markdown("| the | lamp |\n|---|:-:|\n[1]: https://a.org\n", [" the ", " lamp "]);

// Escapes of messages, and untranslated ones alone.
assert.deepStrictEqual(
  Files.read("a.po", 'msgid "a \\\\\\"b\\"\\n"\n"c\\\\n"\nmsgstr ""\n\nmsgid "d"\nmsgstr "e"\n').pieces.map((piece) => piece.text), ['a \\"b"\nc\\n']);
const messages = Files.read("a.po", 'msgid "a"\r\nmsgstr ""\r\n');
assert.strictEqual(messages.join(['x\n"y\\']), 'msgid "a"\r\nmsgstr ""\r\n"x\\n"\r\n"\\"y\\\\"\r\n');

// Subtitles: the lines of a cue are one text, and stay as many.
assert.deepStrictEqual(translated("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nthe lamp\nis red\n\n"), ["the lamp is red"]);

assert.throws(() => Files.read("a.docx", ""), /expected a file ending in/);
