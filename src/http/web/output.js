"use strict";
// The translation as words that can be chosen. A segment is {text}, which stays as it is, or
// {source, translations: [{text, alignment: [[source word, word], ...]}]}; "chosen" is the number
// of the translation that is shown.

const Output = (() => {
  const words = (text) => [...text.matchAll(/[^\t\n\v\f\r ]+/g)].map(
      (m) => ({ begin: m.index, end: m.index + m[0].length, text: m[0] }));

  // Begin of each segment in the source text.
  const sourceBegins = (segments) => {
    let at = 0;
    return segments.map((segment) => {
      const begin = at;
      at += (segment.text ?? segment.source).length;
      return begin;
    });
  };

  const textOf = (segments) =>
      segments.map((s) => s.text ?? s.translations[s.chosen ?? 0].text).join("");

  // Ranges of the source text that a word of the translation is linked to.
  const linkedSource = (segments, index, word) => {
    const segment = segments[index];
    const begin = sourceBegins(segments)[index];
    const places = words(segment.source);
    return segment.translations[segment.chosen ?? 0].alignment
      .filter(([source, target]) => target === word && places[source])
      .map(([source]) => [begin + places[source].begin, begin + places[source].end]);
  };

  // Words of the translation, as [segment, word], that the source word at a position is linked to.
  const linkedTarget = (segments, position) => {
    const begins = sourceBegins(segments);
    const found = [];
    segments.forEach((segment, index) => {
      if (segment.text !== undefined) return;
      const at = position - begins[index];
      const place = words(segment.source).findIndex((w) => w.begin <= at && at < w.end);
      if (place < 0) return;
      for (const [source, target] of segment.translations[segment.chosen ?? 0].alignment)
        if (source === place) found.push([index, target]);
    });
    return found;
  };

  // Of ascending numbers, the run of consecutive ones that is nearest to a number.
  const nearestRun = (numbers, place) => {
    const runs = [];
    numbers.forEach((number, i) => {
      if (i === 0 || number !== numbers[i - 1] + 1) runs.push([]);
      runs.at(-1).push(number);
    });
    const distance = (run) => Math.min(...run.map((number) => Math.abs(number - place)));
    return runs.reduce((best, run) => (distance(run) < distance(best) ? run : best), runs[0] ?? []);
  };

  // What other translations have where this one has a word: [{text, chosen}], each text once. A
  // source word may also be linked to words elsewhere, which do not stand in this place.
  const wordAlternatives = (segment, word) => {
    const shown = segment.chosen ?? 0;
    const current = segment.translations[shown];
    const sources = new Set(
        current.alignment.filter(([, target]) => target === word).map(([source]) => source));
    const own = words(current.text)[word]?.text;
    const found = [];
    segment.translations.forEach((translation, chosen) => {
      if (chosen === shown) return;
      const places = words(translation.text);
      const targets = [...new Set(translation.alignment.filter(([source]) => sources.has(source))
                                      .map(([, target]) => target))];
      const text = nearestRun(targets.sort((a, b) => a - b), word)
                       .map((target) => places[target]?.text ?? "")
                       .join(" ");
      if (text && text !== own && !found.some((each) => each.text === text))
        found.push({ text, chosen });
    });
    return found;
  };

  const render = (element, segments) => {
    element.replaceChildren();
    let first = true;
    segments.forEach((segment, index) => {
      if (segment.text !== undefined) {
        element.append(segment.text);
        return;
      }
      const translation = segment.translations[segment.chosen ?? 0];
      const sentence = document.createElement("span");
      sentence.className = "sentence";
      sentence.dataset.segment = index;
      let at = 0;
      words(translation.text).forEach((word, number) => {
        sentence.append(translation.text.slice(at, word.begin));
        const part = document.createElement("span");
        part.className = "word";
        part.textContent = word.text;
        part.dataset.segment = index;
        part.dataset.word = number;
        part.setAttribute("role", "button");
        part.setAttribute("aria-haspopup", "menu");
        part.tabIndex = first ? 0 : -1;
        first = false;
        sentence.append(part);
        at = word.end;
      });
      sentence.append(translation.text.slice(at));
      element.append(sentence);
    });
  };

  return { words, textOf, linkedSource, linkedTarget, wordAlternatives, render };
})();
