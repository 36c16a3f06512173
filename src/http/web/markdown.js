"use strict";
// Markdown: code, HTML that is no text, link definitions and front matter stay as they are; other
// lines are cut by MarkdownLine.

const Markdown = (() => {
  const { joined, lines } = Pieces;
  const { cut, endOf, closers, label } = MarkdownLine;

  const block = new RegExp(
      String.raw`^\s*(?:>\s?)*\s*` +
      String.raw`(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+|\[\^[^\]]+\]:\s+)?`);
  const isBlank = (line) => /^[\s>]*$/.test(line);
  const isQuoted = (line) => /^\s*>/.test(line);
  const endOfQuote = (line) => /^\s*(?:>\s?)*/.exec(line)[0].length;
  // Whether a line is blank or begins a block of its own, so it does not continue a paragraph.
  const startsBlock = (line) =>
      isBlank(line) || !isBlank(block.exec(line)[0]) || /^[\s>]*(?:`{3}|~{3}|\|)/.test(line);
  const definition = /^\s*\[(?!\^)([^\]]+)\]:/;

  // The line behind the front matter, 0 without any. As in pandoc, a "---" before a blank line is a
  // rule, and so is one that nothing closes.
  const endOfFrontMatter = (all) => {
    if (all[0] !== "---" || (all[2] ?? "").trim() === "") return 0;
    return all.findIndex((line, number) => number > 0 && (line === "---" || line === "...")) + 1;
  };

  // Fenced code (CommonMark, section 4.5): it ends at a fence of the same characters, at least as
  // long, without other text, or with the quote that it is in.
  const fences = () => {
    let fence = "";
    let quoted = false;
    return (line) => {
      const [, quote, rest] = /^\s*((?:>\s?)*)(.*)$/s.exec(line);
      if (fence && quoted && !quote) fence = "";
      const [, marks, info] = /^\s*(`{3,}|~{3,})(.*)$/s.exec(rest) ?? ["", "", ""];
      if (fence) {
        if (marks.startsWith(fence) && info.trim() === "") fence = "";
        return true;
      }
      if (!marks || (marks[0] === "`" && info.includes("`"))) return false;
      fence = marks;
      quoted = quote !== "";
      return true;
    };
  };

  // Code indented by four spaces (CommonMark, section 4.4): behind a blank line, and in no list.
  const indents = () => {
    let inList = false;
    let before = ""; // of the line before: "" blank, "code", "text"
    return (line) => {
      if (line.trim() === "") {
        if (before !== "code") before = "";
        return false;
      }
      const deep = /^( {4}|\t)/.test(line);
      if (/^\s*([-*+]|\d+[.)])\s/.test(line) && (inList || !deep)) inList = true;
      else if (!/^\s/.test(line)) inList = false;
      const isCode = deep && !inList && before !== "text";
      before = isCode ? "code" : "text";
      return isCode;
    };
  };

  // HTML whose text is none (CommonMark, section 4.6): from its tag to the line that closes it.
  const verbatimHtml = () => {
    let close = null;
    const html = (line) => {
      const found = close ? null : /^ {0,3}<(pre|script|style|textarea)(?=[\s>]|$)/i.exec(line);
      if (found) close = new RegExp(`</${found[1]}>`, "i");
      const isInside = close !== null;
      if (isInside && close.test(line)) close = null;
      return isInside;
    };
    html.isOpen = () => close !== null;
    return html;
  };

  // What closes a comment that begins a line and goes on in the next one, also behind blank lines
  // (CommonMark, section 4.6); "" without any.
  const opensComment = (line) => {
    const found = /^ {0,3}(<!--|<\?|<!\[CDATA\[)/.exec(line);
    const closer = found ? closers[found[1]] : "";
    return closer && endOf(line, closer, line.indexOf("<") + 2) < 0 ? closer : "";
  };

  // Says whether a line behind `number` has a closer and continues the paragraph, in which code and
  // tags end. Each line is searched once for a closer: calls come in the order of lines.
  const searcher = (all) => {
    const known = new Map(); // by closer: the line that ended the search, and whether it has one
    const search = (number, closer) => {
      const isTag = closer === ">";
      const quoted = isQuoted(all[number]);
      let end = number + 2;
      for (; end < all.length; end += 2) {
        const closesTag = isTag && !quoted && all[end].trim() === ">";
        if (startsBlock(all[end]) && !closesTag) break;
        if (endOf(all[end], closer, quoted ? endOfQuote(all[end]) : 0) >= 0)
          return { end, found: true };
        if (isTag && all[end].includes("<")) break;
      }
      return { end, found: false };
    };
    return (number, closer) => {
      if (/^[\s>]*[#|]/.test(all[number])) return false; // a block of one line
      if (!(number < known.get(closer)?.end)) known.set(closer, search(number, closer));
      return known.get(closer).found;
    };
  };

  // Says of each line in turn whether it stays as it is.
  const verbatimLines = () => {
    const isFenced = fences();
    const isIndentedCode = indents();
    const isVerbatimHtml = verbatimHtml();
    const isCode = (line) =>
        !isVerbatimHtml.isOpen() && (isFenced(line) || isIndentedCode(line));
    return (line) => isCode(line) || isVerbatimHtml(line) || definition.test(line);
  };

  const read = (text) => {
    const pieces = [];
    const add = (piece) => pieces.push(piece);
    const all = lines(text);
    const labels = new Set(
        all.map((line) => definition.exec(line)).filter(Boolean).map((found) => label(found[1])));
    const front = endOfFrontMatter(all);
    const isVerbatim = verbatimLines();
    const closes = searcher(all);
    let open = ""; // what closes the code or HTML that a line before has opened
    let quoted = false; // in a quote
    all.forEach((line, number) => {
      if (number < front || number % 2 === 1) return add({ text: line });
      if (!open) {
        if (isVerbatim(line)) return add({ text: line });
        open = opensComment(line);
        if (open) {
          quoted = false;
          return add({ text: line });
        }
      }
      const head = open ? line.slice(0, quoted ? endOfQuote(line) : 0) : block.exec(line)[0];
      const rest = line.slice(head.length);
      if (!open || endOf(rest, open, 0) >= 0) quoted = isQuoted(line);
      add({ text: head });
      open = cut(rest, labels, open, (closer) => closes(number, closer), add);
    });
    return joined(pieces.filter((piece) => piece.text !== ""));
  };

  return { read };
})();
