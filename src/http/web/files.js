"use strict";
// Files whose structure stays: each is cut into pieces, of which those to translate are sent.

const Files = (() => {
  const { translatable, joined, lines } = Pieces;

  // Line ends are pieces of their own; the server would keep them too, but requests stay small.
  const plain = (text) =>
      joined(lines(text).filter((part) => part !== "")
                 .map((part) => ({ text: part, translate: translatable(part) })));

  const html = (text) => joined([{ text, translate: true }], "html");

  const readers = {
    txt: plain,
    md: Markdown.read,
    html,
    htm: html,
    srt: Subtitles.read,
    po: Messages.read,
  };

  // A byte order mark stays in front of the file.
  const read = (name, text) => {
    const extension = name.split(".").pop().toLowerCase();
    if (!Object.hasOwn(readers, extension))
      throw new Error(`${name}: expected a file ending in .txt, .md, .html, .srt or .po`);
    const mark = text.startsWith("\ufeff") ? "\ufeff" : "";
    const file = readers[extension](text.slice(mark.length));
    return { ...file, join: (translations) => mark + file.join(translations) };
  };

  // Parts of an array that make one request each.
  const batches = (texts, most = 100, characters = 20000) => {
    const result = [];
    let size = 0;
    for (const text of texts) {
      const last = result[result.length - 1];
      if (!last || last.length === most || size + text.length > characters) {
        result.push([]);
        size = 0;
      }
      result[result.length - 1].push(text);
      size += text.length;
    }
    return result;
  };

  // The translations of batches, in order. A file has one language: that of the first batch in
  // which it is detected.
  const translate = async (all, fields, call, progress) => {
    const translations = [];
    let { source } = fields;
    for (const batch of all) {
      const answer = await call("translate", { ...fields, source, q: batch });
      const detected = answer.detectedLanguage?.[0];
      if (detected?.confidence > 0) source = detected.language; // 0: a guess
      translations.push(...answer.translatedText);
      progress(translations.length);
    }
    return translations;
  };

  return { read, batches, translate };
})();
