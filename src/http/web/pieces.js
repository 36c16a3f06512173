"use strict";
// What the readers of files share. A reader returns {format, pieces: [{text, translate}],
// join(translations)}; translations are those of the pieces to translate, in order.

const Pieces = (() => {
  const translatable = (text) => /[\p{L}]/u.test(text);

  const joined = (pieces, format = "text") => ({
    format,
    pieces,
    join: (translations) => {
      let next = 0;
      return pieces.map((piece) => (piece.translate ? translations[next++] : piece.text)).join("");
    },
  });

  // Lines and, as every second element, their ends.
  const lines = (text) => text.split(/(\r\n|\n|\r)/);

  return { translatable, joined, lines };
})();
