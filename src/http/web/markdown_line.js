"use strict";
// The markup inside a line of Markdown: escapes, code, images, targets of links, footnotes,
// addresses, HTML and emphasis stay, and the text between them is translated.

const MarkdownLine = (() => {
  const { translatable } = Pieces;

  // Parentheses of a target may be nested once, and some times. No alternative reads past what
  // could begin it again, so the time is linear.
  const target = String.raw`\([^()]*(?:\([^()]*\)[^()]*){0,99}\)`;
  const markup = new RegExp(
    [
      String.raw`\\[!-/:-@\[-\x60{-~]`, // only punctuation is escaped (CommonMark, section 2.4)
      "`+",
      String.raw`!\[[^[\]]*\]${target}|\]${target}|\]\[[^[\]]*\]|\[\^[^[\]]*\]|\[|\]`,
      String.raw`<!--|<\?|<!\[CDATA\[`,
      String.raw`<[a-zA-Z/!][^<>]*(?:>|$)|<[^\s<>@]+@[^\s<>@]+>`,
      String.raw`https?:\/\/\S+`,
      String.raw`\*{1,3}|(?<![\p{L}\p{N}])_{1,3}|_{1,3}(?![\p{L}\p{N}])|~~|\|`,
    ].join("|"),
    "gu",
  );
  const label = (text) => text.trim().replace(/\s+/g, " ").toLowerCase();

  // What closes code, HTML that is no tag, or a tag that continues in the next line; "" for others.
  const closers = { "<!--": "-->", "<?": "?>", "<![CDATA[": "]]>" };
  const closerOf = (mark) => {
    if (mark[0] === "`") return mark;
    if (mark[0] !== "<" || mark.endsWith(">")) return "";
    return closers[mark] ?? ">";
  };

  // The place behind the closer, from `from` on; -1 without any. A tag contains no "<".
  const endOf = (text, closer, from) => {
    if (closer === ">") {
      const found = /[<>]/.exec(text.slice(from));
      return found && found[0] === ">" ? from + found.index + 1 : -1;
    }
    if (closer[0] === "`") {
      for (const found of text.slice(from).matchAll(/`+/g))
        if (found[0] === closer) return from + found.index + closer.length;
      return -1;
    }
    const at = text.indexOf(closer, from);
    return at < 0 ? -1 : at + closer.length;
  };

  // Where the code or HTML that begins with `found` ends in its line, and `open`: what closes it in
  // a later line. Null: it is text. `absent`: the closers that the rest of the line does not have.
  const extent = (found, closer, line, absent, closes) => {
    // "<!-->" is a comment.
    const from = found.index + (closer[0] === "`" ? closer.length : 2);
    const end = absent.has(closer) ? -1 : endOf(line, closer, from);
    if (end >= 0) return { end, open: "" };
    absent.add(closer);
    return closes(closer) ? { end: line.length, open: closer } : null;
  };

  // Behind the label of a link without a target that names a definition, or else `end`.
  const endOfLabel = (line, at, end, labels) => {
    const link = /^\[([^[\]]*)\](?:\[\])?(?![[(])/.exec(line.slice(at));
    return link && labels.has(label(link[1])) ? at + link[0].length : end;
  };

  // Adds the parts of a line. `labels`: of the link definitions. `open`: what closes the code or
  // HTML that a line before has opened, "" without any; `closes` says whether a later line of the
  // paragraph has a closer. Returns `open` for the next line.
  const cut = (line, labels, open, closes, add) => {
    const absent = new Set();
    let done = open ? endOf(line, open, 0) : 0;
    if (done < 0) done = line.length;
    else open = "";
    add({ text: line.slice(0, done) });
    markup.lastIndex = done;
    for (let found; !open && (found = markup.exec(line)); ) {
      const mark = found[0];
      const closer = closerOf(mark);
      let end = markup.lastIndex;
      if (closer) {
        const spans = extent(found, closer, line, absent, closes);
        if (!spans) {
          markup.lastIndex = mark[0] === "`" ? end : found.index + 1;
          continue;
        }
        ({ end, open } = spans);
      } else if (mark === "[") end = endOfLabel(line, found.index, end, labels);
      const text = line.slice(done, found.index);
      add({ text, translate: translatable(text) });
      add({ text: line.slice(found.index, end) });
      markup.lastIndex = done = end;
    }
    const text = line.slice(done);
    add({ text, translate: translatable(text) });
    return open;
  };

  return { cut, endOf, closers, label };
})();
