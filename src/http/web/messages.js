"use strict";
// Messages of gettext (.po): empty translations are filled in; the others, the header and comments
// stay.

const Messages = (() => {
  const { translatable, lines } = Pieces;
  const characters = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", '"': '"', "\\": "\\" };
  const letters = Object.fromEntries(
      Object.entries(characters).map(([letter, character]) => [character, letter]));

  // Text, and escapes: sequences that color the text of a terminal, octal and hexadecimal numbers,
  // and characters.
  const tokens =
      /\\(?:033|x1[bB]|e)\[[\d;]*[A-Za-z]|\\(?:[0-7]{1,3}|x[\da-fA-F]+|.)|[^\\]+|\\/gsu;

  // The parts of a quoted string: {text}, and {escape} for what is no text and stays as it is.
  const unquoted = (value) => {
    const parts = [];
    const add = (text) => {
      const last = parts[parts.length - 1];
      if (last?.text !== undefined) last.text += text;
      else parts.push({ text });
    };
    for (const [token] of value.matchAll(tokens)) {
      if (token[0] !== "\\") add(token);
      else if (Object.hasOwn(characters, token.slice(1))) add(characters[token[1]]);
      else parts.push({ escape: token });
    }
    return parts.map((part) => ({ ...part, translate: translatable(part.text ?? "") }));
  };

  // The strings of parts, one for each line of the text.
  const quoted = (parts) => {
    const strings = [""];
    const escaped = (text) => text.replace(/[\n\t\r\b\f"\\]/g, (found) => "\\" + letters[found]);
    for (const { text, escape } of parts)
      for (const line of escape ? [escape] : text.split(/(?<=\n)/)) {
        strings[strings.length - 1] += escape ?? escaped(line);
        if (line.endsWith("\n")) strings.push("");
      }
    if (strings.length > 1 && strings[strings.length - 1] === "") strings.pop();
    return [...(strings.length > 1 ? [""] : []), ...strings].map((string) => `"${string}"`);
  };

  const keyworded = /^(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+"(.*)"\s*$/s;
  const continued = /^(\s*)"(.*)"\s*$/s;
  // Null also for a string that a quote or a backslash ends early.
  const match = (pattern, line) => {
    const found = pattern.exec(line);
    return found && !/["\\]/.test(found[2].replace(/\\./gs, "")) ? found : null;
  };

  // The statement in line `first`, {keyword, value, next}, where `next` is the line behind it;
  // null: the line has none.
  const statement = (all, first) => {
    const found = match(keyworded, all[first]);
    if (!found) return null;
    const values = [found[2]];
    let next = first + 2;
    for (let more; next < all.length && (more = match(continued, all[next])); next += 2)
      values.push(more[2]);
    return { keyword: found[1], value: values.join(""), next };
  };

  // Notes the messages of an entry, and returns the parts of the one whose translation is empty;
  // null for other statements.
  const partsFor = (entry, { keyword, value }) => {
    if (keyword === "msgctxt") entry.one = entry.many = undefined;
    if (keyword === "msgid") [entry.one, entry.many] = [value, undefined];
    if (keyword === "msgid_plural") entry.many = value;
    if (!keyword.startsWith("msgstr") || value !== "") return null;
    const isOne = keyword === "msgstr" || keyword === "msgstr[0]";
    const parts = unquoted((isOne ? entry.one : (entry.many ?? entry.one)) ?? "");
    return parts.some((part) => part.translate) ? parts : null;
  };

  const read = (text) => {
    const all = lines(text);
    const blocks = []; // {text}, which stays, or {keyword, parts, between, end} with line ends
    let entry = {};
    for (let first = 0; first < all.length; ) {
      const found = statement(all, first);
      if (!found && all[first].trim() === "") entry = {};
      const parts = found && partsFor(entry, found);
      const next = found?.next ?? first + 2;
      if (parts) {
        const between = all[first + 1] || all[first - 1];
        blocks.push({ keyword: found.keyword, parts, between, end: all[next - 1] ?? "" });
      } else blocks.push({ text: all.slice(first, next).join("") });
      first = next;
    }
    return {
      format: "text",
      pieces: blocks.flatMap((block) => block.parts ?? [])
                  .map((part) => ({ text: part.text ?? part.escape, translate: part.translate })),
      join: (translations) => {
        let next = 0;
        const translated = (part) => (part.translate ? { text: translations[next++] } : part);
        const filled = ({ keyword, parts, between, end }) =>
            `${keyword} ${quoted(parts.map(translated)).join(between)}${end}`;
        return blocks.map((block) => block.text ?? filled(block)).join("");
      },
    };
  };

  return { read };
})();
