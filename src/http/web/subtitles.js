"use strict";
// Subtitles (.srt): the lines of a cue are one text; numbers, times and markup stay.

const Subtitles = (() => {
  const { translatable, lines } = Pieces;
  const time = /^\s*\d+:\d+:\d+[,.]\d+\s+-->/;
  const markup = /(<\/?[a-zA-Z][^<>]*>|\{\\[^{}]*\})/;

  // The words of a text; a tag is not split at its spaces.
  const wordsOf = (text) => {
    const words = [""];
    for (const [part] of text.matchAll(/<[^<>]*>|[^ <]+|[ <]/g))
      if (part === " ") words.push("");
      else words[words.length - 1] += part;
    return words;
  };

  // Cuts a text into at most `count` lines of about the same length.
  const wrap = (text, count) => {
    const words = wordsOf(text);
    const result = [];
    let next = 0;
    let rest = text.length; // of the words from `next` on
    for (let left = count; left > 0 && next < words.length; left--) {
      const goal = rest / left;
      const first = next;
      let length = words[next++].length;
      while (next < words.length && (left === 1 || length + words[next].length / 2 < goal))
        length += 1 + words[next++].length;
      rest -= length + 1;
      result.push(words.slice(first, next).join(" "));
    }
    return result.filter((line) => line !== "");
  };

  // The file as {text}, which stays, and cues {lines, ends}.
  const blocks = (text) => {
    const all = lines(text);
    const result = [];
    let cue = null;
    for (let i = 0; i < all.length; i += 2) {
      const line = all[i];
      const end = all[i + 1] ?? "";
      const isTime = time.test(line);
      if (cue && !isTime && line.trim() !== "") {
        if (cue.lines.length === 0) result.push(cue);
        cue.lines.push(line);
        cue.ends.push(end);
      } else {
        result.push({ text: line + end });
        cue = isTime ? { lines: [], ends: [] } : null;
      }
    }
    return result;
  };

  // {text} for a cue without anything to translate, whose lines stay as they are.
  const withParts = (block) => {
    if (block.text !== undefined) return block;
    const parts = block.lines.join(" ").split(markup).map(
        (text, i) => ({ text, translate: i % 2 === 0 && translatable(text) }));
    if (parts.some((part) => part.translate)) return { ...block, parts };
    return { text: block.lines.map((line, i) => line + block.ends[i]).join("") };
  };

  // The translation gets as many lines as the cue has, where it has the words for them.
  const rewrapped = (text, { ends }) => {
    const wrapped = wrap(text, ends.length);
    const last = wrapped.length - 1;
    return wrapped.map((line, i) => line + ends[i < last ? i : ends.length - 1]).join("");
  };

  const read = (text) => {
    const all = blocks(text).map(withParts);
    return {
      format: "text",
      pieces: all.flatMap((block) => block.parts ?? []),
      join: (translations) => {
        let next = 0;
        const whole = ({ parts }) =>
            parts.map((part) => (part.translate ? translations[next++] : part.text)).join("");
        return all.map((block) => block.text ?? rewrapped(whole(block), block)).join("");
      },
    };
  };

  return { read };
})();
