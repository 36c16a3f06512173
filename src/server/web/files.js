"use strict";
// Files whose structure stays: each is cut into pieces, of which those to translate are sent.
// A reader returns {format, pieces: [{text, translate}], join(translations)}; translations are those
// of the pieces to translate, in order.

const Files = (() => {
  const translatable = (text) => /[\p{L}]/u.test(text);

  const joined = (pieces, format = "text") => ({
    format,
    pieces,
    join: (translations) => {
      let next = 0;
      return pieces.map((piece) => (piece.translate ? translations[next++] : piece.text)).join("");
    },
  });

  // Line ends are pieces of their own; the server would keep them too, but requests stay small.
  const lines = (text) => text.split(/(\r\n|\n|\r)/).filter((part) => part !== "");

  const plain = (text) => joined(lines(text).map((line) => ({ text: line, translate: translatable(line) })));

  const html = (text) => joined([{ text, translate: true }], "html");

  // Markup inside a line of Markdown: escapes, runs of backticks, images, targets of links,
  // footnotes, addresses, HTML and emphasis. Parentheses of a target may be nested once.
  const target = String.raw`\((?:[^()]|\([^()]*\))*\)`;
  const inline = new RegExp(
    String.raw`\\.|`+"`+"+String.raw`|!\[[^\]]*\]${target}|\]${target}|\]\[[^\]]*\]|\[\^[^\]]*\]|\[|\]|<[^>]*>|https?:\/\/\S+|\*{1,3}|(?<![\p{L}\p{N}])_{1,3}|_{1,3}(?![\p{L}\p{N}])|~~|\|`, "gu");
  const block = /^(\s*(?:>\s?)*\s*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+|\[\^[^\]]+\]:\s+)?)(.*)$/s;
  // Whether a line is blank or begins a block of its own, so it does not continue a paragraph.
  const startsBlock = (line) => /^(?:\s|>)*$/.test(line) || /[^\s>]/.test(block.exec(line)[1]) || /^\s*(?:>\s?)*\s*(?:`{3}|~{3}|\|)/.test(line);
  const definition = /^\s*\[(?!\^)([^\]]+)\]:/;
  const label = (text) => text.trim().replace(/\s+/g, " ").toLowerCase();

  // Where a run of as many backticks begins, from `from` on; -1 without any.
  const backticks = (text, run, from) => {
    for (const found of text.slice(from).matchAll(/`+/g)) if (found[0] === run) return from + found.index;
    return -1;
  };

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

  // The parts of a line. `labels`: of the link definitions, which a link without a target names.
  // `code`: the backticks of a code span that a line before has opened, "" outside of code; `closes`
  // says whether a later line of the paragraph closes one. Returns `code` for the next line.
  const cut = (line, labels, code, closes, add) => {
    let done = 0;
    const keep = (end) => {
      add({ text: line.slice(done, end) });
      done = end;
    };
    if (code) {
      const at = backticks(line, code, 0);
      keep(at < 0 ? line.length : at + code.length);
      if (at < 0) return code;
    }
    inline.lastIndex = done;
    for (let found; (found = inline.exec(line)); ) {
      let end = inline.lastIndex;
      const mark = found[0];
      let open = "";
      if (mark[0] === "`") {
        const at = backticks(line, mark, end);
        if (at >= 0) end = at + mark.length;
        else if (closes(mark)) {
          open = mark;
          end = line.length;
        } else continue; // text
      } else if (mark === "[") {
        const link = /^\[([^[\]]*)\](?:\[\])?(?![[(])/.exec(line.slice(found.index));
        if (link && labels.has(label(link[1]))) end = found.index + link[0].length;
      }
      const text = line.slice(done, found.index);
      add({ text, translate: translatable(text) });
      done = found.index;
      keep(end);
      inline.lastIndex = done;
      if (open) return open;
    }
    const text = line.slice(done);
    add({ text, translate: translatable(text) });
    return "";
  };

  const markdown = (text) => {
    const pieces = [];
    const all = text.split(/(\r\n|\n|\r)/); // every second one is a line end
    const labels = new Set(all.map((line) => definition.exec(line)).filter(Boolean).map((found) => label(found[1])));
    const front = endOfFrontMatter(all);
    const isFenced = fences();
    const isIndentedCode = indents();
    const isVerbatimHtml = verbatimHtml();
    let code = "";
    all.forEach((line, number) => {
      const isLine = number >= front && number % 2 === 0;
      if (isLine && line.trim() === "") code = "";
      const isCode = isLine && ((!isVerbatimHtml.isOpen() && (isFenced(line) || isIndentedCode(line))) || isVerbatimHtml(line));
      const verbatim = !isLine || isCode || definition.test(line) || (!code && !translatable(line));
      if (verbatim) {
        pieces.push({ text: line });
        return;
      }
      // A code span ends with its block (CommonMark, section 6.1).
      const closes = (run) => {
        if (/^\s*(?:>\s?)*\s*(?:#|\|)/.test(line)) return false;
        for (let next = number + 2; next < all.length && !startsBlock(all[next]); next += 2)
          if (backticks(all[next], run, 0) >= 0) return true;
        return false;
      };
      const [, head, rest] = code ? ["", "", line] : block.exec(line);
      pieces.push({ text: head });
      code = cut(rest, labels, code, closes, (piece) => pieces.push(piece));
    });
    return joined(pieces.filter((piece) => piece.text !== ""));
  };

  // Lines of a cue are one text; the translation gets as many lines again.
  const wrap = (text, count) => {
    const words = text.split(" ");
    const result = [];
    for (let left = count; left > 0; left--) {
      const goal = words.join(" ").length / left;
      let line = words.shift() ?? "";
      while (words.length > 0 && (left === 1 || line.length + words[0].length / 2 < goal)) line += " " + words.shift();
      result.push(line);
    }
    return result.filter((line) => line !== "");
  };

  const subtitles = (text) => {
    const end = text.includes("\r\n") ? "\r\n" : "\n";
    const pieces = [];
    const cues = [];
    let cue = null;
    const close = () => {
      if (cue) cues.push(cue);
      cue = null;
    };
    for (const line of text.split(/\r\n|\n|\r/)) {
      if (/^\s*\d+:\d+:\d+[,.]\d+\s+-->/.test(line)) {
        close();
        cues.push({ verbatim: line });
        cue = { lines: [] };
      } else if (cue && line.trim() !== "") cue.lines.push(line);
      else {
        close();
        cues.push({ verbatim: line });
      }
    }
    close();
    const markup = /(<[^>]*>|\{\\[^}]*\})/;
    for (const each of cues) {
      if (each.verbatim !== undefined) continue;
      each.parts = each.lines.join(" ").split(markup).map((part, i) => ({ text: part, translate: i % 2 === 0 && translatable(part) }));
      pieces.push(...each.parts);
    }
    return {
      format: "text",
      pieces,
      join: (translations) => {
        let next = 0;
        return cues
          .map((each) => {
            if (each.verbatim !== undefined) return each.verbatim;
            const whole = each.parts.map((part) => (part.translate ? translations[next++] : part.text)).join("");
            return wrap(whole, each.lines.length).join(end);
          })
          .filter((part, i) => part !== "" || cues[i].verbatim !== undefined)
          .join(end);
      },
    };
  };

  const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };
  const unquote = (text) => text.replace(/\\(.)/g, (_, letter) => escapes[letter] ?? letter);
  const quoted = (text) => {
    const quote = (part) => `"${part.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n").replace(/\t/g, "\\t").replace(/\r/g, "\\r")}"`;
    const parts = text.split(/(?<=\n)/);
    return parts.length > 1 ? ['""', ...parts.map(quote)] : [quote(text)];
  };

  // Empty translations are filled in; the others, the header and comments stay.
  const messages = (text) => {
    const end = text.includes("\r\n") ? "\r\n" : "\n";
    const rows = text.split(/\r\n|\n/);
    const out = []; // lines, or {keyword, piece}
    const pieces = [];
    let entry = {};
    for (let i = 0; i < rows.length; ) {
      const found = /^(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+"((?:[^"\\]|\\.)*)"\s*$/.exec(rows[i]);
      if (!found) {
        if (rows[i].trim() === "") entry = {};
        out.push(rows[i++]);
        continue;
      }
      const first = i++;
      let value = found[2];
      for (let more; i < rows.length && (more = /^\s*"((?:[^"\\]|\\.)*)"\s*$/.exec(rows[i])); i++) value += more[1];
      const keyword = found[1];
      if (keyword === "msgctxt") entry = {};
      if (keyword === "msgid") entry = { one: unquote(value) };
      if (keyword === "msgid_plural") entry.many = unquote(value);
      const source = keyword.startsWith("msgstr") ? (keyword === "msgstr" || keyword === "msgstr[0]" ? entry.one : (entry.many ?? entry.one)) : "";
      if (source && value === "" && translatable(source)) {
        const piece = { text: source, translate: true };
        pieces.push(piece);
        out.push({ keyword });
      } else out.push(...rows.slice(first, i));
    }
    return {
      format: "text",
      pieces,
      join: (translations) => {
        let next = 0;
        return out
          .flatMap((row) => {
            if (typeof row === "string") return [row];
            const [head, ...rest] = quoted(translations[next++]);
            return [`${row.keyword} ${head}`, ...rest];
          })
          .join(end);
      },
    };
  };

  const readers = { txt: plain, md: markdown, html, htm: html, srt: subtitles, po: messages };
  const read = (name, text) => {
    const reader = readers[name.split(".").pop().toLowerCase()];
    if (!reader) throw new Error(`${name}: expected a file ending in .txt, .md, .html, .srt or .po`);
    return reader(text);
  };

  // Parts of an array that make one request each.
  const batches = (texts, most = 100, characters = 20000) => {
    const result = [];
    let size = 0;
    for (const text of texts) {
      if (result.length === 0 || result[result.length - 1].length === most || size + text.length > characters) {
        result.push([]);
        size = 0;
      }
      result[result.length - 1].push(text);
      size += text.length;
    }
    return result;
  };

  return { read, batches };
})();
