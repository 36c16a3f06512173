// The page of nmt-explain, drawn from the embedded data.

const page = document.getElementById("page");
const state = {
  sentence: Math.max(0, data.sentences.findIndex((s) => s.units.length)),
  unit: Math.max(0, data.units.findIndex((u) => u.gates))
};

// Label of a piece: the first piece of a word without its mark, the others with a dot in front.
const label = (piece) =>
    (piece.startsWith("\u2581")                ? piece.slice(1) || "\u2423"
         : piece === "<s>" || piece === "</s>" ? piece
                                               : `\u00b7${piece}`);
const sourceTokens = (s) => s.source_pieces.map(label);
const targetTokens = (s) => s.target_pieces.map(label);
// Inputs of a unit by position; the decoder reads the previous piece, initially <s>.
const tokensOf = (unit, s) =>
    (unit.reads === "source" ? sourceTokens(s) : ["<s>", ...targetTokens(s).slice(0, -1)]);
const short = (text, most = 14) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
// Whether the piece at i continues the word of the previous piece.
const joins = (words, i) => i > 0 && words[i] === words[i - 1];

document.title = `Inside ${data.model.name}`;
page.append(
    el("h1", {}, `Inside ${data.model.name}`),
    el("p", {class: "soft"},
       `${data.model.summary}; checkpoint of update ` +
           `${show(data.model.updates)}.`),
    el("p", {class: "note"},
       "Sentences are shown as pieces; a dot before a piece marks the " +
           "continuation of a word. Hover over elements for words and numbers."));

// --- choosing a sentence
const choice =
    el("select", {"aria-label": "sentence"},
       data.sentences.map(
           (s, i) =>
               el("option", {value: i}, `${s.line}. ${short(s.source, 110) || "(empty line)"}`)));
const before = el("button", {type: "button", "aria-label": "sentence before"}, "\u2190"),
      after = el("button", {type: "button", "aria-label": "next sentence"}, "\u2192");
const choose = (i) => {
  if (i < 0 || i >= data.sentences.length) return;
  state.sentence = i;
  draw();
};
choice.addEventListener("change", () => choose(Number(choice.value)));
before.addEventListener("click", () => choose(state.sentence - 1));
after.addEventListener("click", () => choose(state.sentence + 1));
const view = el("div"), overview = el("div");
page.append(
    el("div", {class: "bar"}, before, after, choice), view, overview,
    el("p", {class: "note", style: "margin-top:32px"},
       `Made by nmt-explain ${data.nmt}. The data are embedded as JSON; ` +
           "nmt-explain --json writes the same."));

// --- attention
function heatmap(title, room, rows, columns, rowWords, columnWords, values, describe) {
  const size = Math.max(13, Math.min(26, Math.floor(room / Math.max(columns.length, 1))));
  const longest = (list) => list.reduce((m, t) => Math.max(m, short(t).length), 1);
  const left = 12 + 7.2 * longest(rows), top = 10 + 5.6 * longest(columns);
  const width = left + size * columns.length + 6 + 4 * longest(columns),
        height = top + size * rows.length + 4;
  const root = svg(
      "svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title});
  const names = {row: [], column: []};
  columns.forEach(
      (t, i) => names.column.push(root.appendChild(
          svg("text", {
            class: "token",
            transform: `translate(${left + size * (i + 0.6)} ${top - 6}) rotate(-50)`
          },
              short(t)))));
  rows.forEach(
      (t, i) => names.row.push(root.appendChild(
          svg("text",
              {class: "token", x: left - 6, y: top + size * (i + 0.5) + 4, "text-anchor": "end"},
              short(t)))));
  rows.forEach((_, r) => columns.forEach((__, c) => {
    const value = values[r][c];
    const cell = svg("rect", {
      class: "cell",
      x: left + size * c,
      y: top + size * r,
      width: size,
      height: size,
      fill: `rgba(var(--heat), ${Math.min(1, 0.03 + 0.97 * value).toFixed(3)})`
    });
    hover(cell, () => describe(r, c, value));
    cell.addEventListener(
        "pointerenter",
        () => [names.row[r], names.column[c]].forEach((n) => n.classList.add("on")));
    cell.addEventListener(
        "pointerleave",
        () => [names.row[r], names.column[c]].forEach((n) => n.classList.remove("on")));
    root.append(cell);
  }));
  const edge = (at, horizontal) =>
      svg("line",
          horizontal ? {class: "edge", x1: left, x2: left + size * columns.length, y1: at, y2: at}
                     : {class: "edge", x1: at, x2: at, y1: top, y2: top + size * rows.length});
  rowWords.forEach((_, r) => {
    if (r && !joins(rowWords, r)) root.append(edge(top + size * r, true));
  });
  columnWords.forEach((_, c) => {
    if (c && !joins(columnWords, c)) root.append(edge(left + size * c, false));
  });
  return el("section", {class: "card"}, el("h3", {}, title), root);
}

function drawAttention(s) {
  const parts = [el("h2", {}, "Attention")];
  if (!s.attention.length)
    return [
      ...parts,
      el("p", {class: "note"},
         "This model has no attention: the decoder receives the source only " +
             "through its initial state.")
    ];
  parts.push(
      el("p", {class: "note"},
         "Each row is a decoder step, labeled with its output piece. The " +
             "weights over the source pieces (columns) sum to 1.",
         el("span", {style: "white-space:nowrap"}, " 0", el("span", {
              class: "scale",
              style: "background:linear-gradient(90deg, rgba(var(--heat),0.03), " +
                  "rgba(var(--heat),1))"
            }),
            "1")));
  const nameOf = (head) => {
    if (s.attention.length === 1) return "Weights";
    const isRead = head + 1 === data.model.alignment_head;
    return `Head ${head + 1}${isRead ? ", which alignments read" : ""}`;
  };
  const rows = targetTokens(s), columns = sourceTokens(s),
        maps = s.attention.map((values, head) => [nameOf(head), values]);
  if (maps.length > 1)
    maps.unshift([
      "Mean of all heads",
      rows.map(
          (_, r) => columns.map(
              (__, c) => s.attention.reduce((sum, map) => sum + map[r][c], 0) / s.attention.length))
    ]);
  parts.push(el(
      "div", {class: "maps"},
      maps.map(
          ([title, values]) => heatmap(
              title, maps.length > 1 ? 415 : 640, rows, columns, s.target_words, s.source_words,
              values,
              (r, c, value) => `${rows[r]} \u2190 ${columns[c]}\n${title}: ${show(value, 4)}`))));
  return parts;
}

// --- one unit
const unitTitle = (u) => `${u.name} (${u.unit}${u.variant ? ` ${u.variant}` : ""})`;

// A drawing with a position for every token, as wide as the card if the tokens fit.
function tokenFrame(tokens, options) {
  const longest = tokens.reduce((m, t) => Math.max(m, short(t).length), 1);
  const width = Math.max(1080, tokens.length * 24 + 70), bottom = 14 + 5.4 * longest,
        height = options.height + bottom;
  const {root, sx, sy, a} = frame({
    title: options.title,
    x: [-0.5, tokens.length - 0.5],
    y: options.y,
    xLabel: "",
    whole: true,
    size: {width, height, left: 62, right: 26, top: 8, bottom}
  });
  for (const node of [...root.querySelectorAll("text")])
    if (node.getAttribute("text-anchor") === "middle") node.remove();
  for (const node of [...root.querySelectorAll("line.axis")])
    if (node.getAttribute("x1") === node.getAttribute("x2")) node.remove();
  const names = tokens.map(
      (t, i) => root.appendChild(
          svg("text", {
            class: "token",
            "text-anchor": "end",
            transform: `translate(${sx(i) + 5} ${a.height - a.bottom + 14}) rotate(-40)`
          },
              short(t))));
  root.append(
      svg("text", {
        x: 13,
        y: (a.top + a.height - a.bottom) / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 13 ${(a.top + a.height - a.bottom) / 2})`
      },
          options.yLabel));
  root.classList.add("wide");
  if (width > 1080) root.style.minWidth = `${width}px`;
  return {root, sx, sy, a, names};
}
const hue = (i, n) => `hsl(${Math.round((i * 300) / Math.max(n, 1) + 205) % 360} 62% 50%)`;

// What a mean of gates is over: a unit with a matrix state has gates of its heads.
function gateValues(u) {
  return `${u.gate_values} ${u.gate_values === u.width ? "channels" : "gates of the heads"}`;
}

function memoryCard(u, tokens, numbers) {
  const n = tokens.length, forward = u.direction === "forward",
        end = (k, j) => (forward ? k + j : k - j);
  const high = numbers.memory.flat().reduce((a, b) => Math.max(a, b), 0.05);
  const {root, sx, sy, a, names} = tokenFrame(
      tokens, {title: "memory", yLabel: "weight in the state", height: 230, y: [0, high]});
  const read = el("p", {class: "note number"}, "Point at a curve or a word.");
  const curves = numbers.memory.map((weights, k) => {
    const points = weights.map((w, j) => [sx(end(k, j)), sy(w)]);
    const curve = svg("path", {
      class: "curve",
      stroke: hue(k, n),
      d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")
    });
    const dot = svg("circle", {cx: points[0][0], cy: points[0][1], r: 3, fill: hue(k, n)});
    root.append(curve, dot);
    return curve;
  });
  const light = (k) => {
    root.classList.add("dim");
    curves.forEach((c, i) => c.classList.toggle("on", i === k));
    names.forEach((t, i) => t.classList.toggle("on", i === k));
  };
  const off = () => {
    root.classList.remove("dim");
    [...curves, ...names].forEach((c) => c.classList.remove("on"));
    tip.hide();
  };
  const cover = svg("rect", {
    class: "cover",
    x: a.left,
    y: 0,
    width: a.width - a.left - a.right,
    height: a.height - a.bottom
  });
  cover.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect(),
          px = ((event.clientX - box.left) / box.width) * a.width,
          py = ((event.clientY - box.top) / box.height) * a.height;
    let best = null;
    numbers.memory.forEach((weights, k) => weights.forEach((w, j) => {
      const d = (sx(end(k, j)) - px) ** 2 + (sy(w) - py) ** 2;
      if (!best || d < best.d) best = {d, k, j, w};
    }));
    if (!best) return;
    light(best.k);
    const steps = `${best.j} ${best.j === 1 ? "step" : "steps"} later`;
    const where = best.j ? `at ${tokens[end(best.k, best.j)]}, ${steps}` : "at its own step";
    tip.show(event, `${tokens[best.k]} in the state ${where}\nweight ${show(best.w, 4)}`);
  });
  cover.addEventListener("pointerleave", off);
  names.forEach((node, k) => {
    node.addEventListener("pointermove", (event) => {
      light(k);
      const weights = numbers.memory[k].slice(0, 8).map((w, j) => `+${j}: ${show(w, 3)}`);
      tip.show(event, `${tokens[k]}\n${weights.join("\n")}`);
    });
    node.addEventListener("pointerleave", off);
  });
  root.append(cover);
  const input = u.reads === "target" ? "the context that attention gives" : "the forward states";
  const step = {
    lower: " The step has a second unit, whose forget gate is included.",
    higher: ` This is the step's second unit, which reads ${input}; ` +
        "the first unit's forget gate counts too."
  };
  return el(
      "section", {class: "card wide-card"},
      el("h3", {}, "Memory: weight of each piece in later states"),
      el("p", {class: "note"},
         "Weight of a piece in the state after each later step" +
             `${forward ? "" : " (read from right to left)"}: its input gate times the forget ` +
             `gates since, mean of ${gateValues(u)} (LRN, eq. 5-7).${step[u.step] || ""}`),
      el("div", {class: "scroll"}, root));
}

// Gates lie between 0 and 1, except exponential ones.
const upTo = (gates) => [0, Math.max(1, ...gates.input, ...gates.forget)];

function gatesCard(u, tokens, numbers) {
  const card = (p) => (p === null ? "none" : show(p, 3));
  const {root, sx, sy, a} =
      tokenFrame(tokens, {title: "gates", yLabel: "mean gate", height: 170, y: upTo(numbers)});
  const lines =
      [["input gate", numbers.input, "var(--c1)"], ["forget gate", numbers.forget, "var(--c2)"]];
  for (const [, values, color] of lines) {
    root.append(svg("path", {
      class: "series",
      stroke: color,
      d: values.map((v, i) => `${i ? "L" : "M"}${sx(i).toFixed(1)} ${sy(v).toFixed(1)}`).join("")
    }));
    values.forEach(
        (v, i) => root.append(svg("circle", {cx: sx(i), cy: sy(v), r: 2.6, fill: color})));
  }
  tokens.forEach(
      (t, i) => root.append(hover(
          svg("rect", {
            class: "cover",
            x: sx(i) - (sx(1) - sx(0)) / 2,
            width: sx(1) - sx(0),
            y: 0,
            height: a.height
          }),
          `${t}\ninput gate ${show(numbers.input[i], 4)}\n` +
              `forget gate ${show(numbers.forget[i], 4)}`)));
  return el(
      "section", {class: "card wide-card"}, el("h3", {}, "Gates by position"),
      legend(lines.map(([name, , color]) => ({name, color}))), el("div", {class: "scroll"}, root),
      el("p", {class: "note"},
         `Mean of ${gateValues(u)}. Pearson's correlation of input and ` +
             `forget gate: ${card(numbers.pearson_means)} between these two ` +
             `curves, ${card(numbers.pearson_values)} over all single gates of ` +
             "the sentence. At the end of the page: the same over all sentences " +
             "(ATR, figure 3)."));
}

function arcsCard(u, tokens, numbers) {
  const longest = tokens.reduce((m, t) => Math.max(m, short(t).length), 1),
        width = Math.max(1080, tokens.length * 24 + 80), gap = (width - 80) / tokens.length;
  const x = (i) => 50 + gap * (i + 0.5),
        reach = numbers.strongest.reduce((m, s) => Math.max(m, Math.abs(s.at - s.from)), 5);
  const rise = (d) => 120 * Math.sqrt(d / reach), base = 128,
        most = numbers.strongest.reduce((m, s) => Math.max(m, s.weight), 1e-9);
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${base + 24 + 5.4 * longest}`,
    role: "img",
    "aria-label": "strongest earlier piece",
    class: "wide"
  });
  if (width > 1080) root.style.minWidth = `${width}px`;
  const names = tokens.map(
      (t, i) =>
          svg("text", {
            class: "token",
            "text-anchor": "end",
            transform: `translate(${x(i) + 5} ${base + 16}) rotate(-40)`
          },
              short(t)));
  for (const s of numbers.strongest) {
    const d = Math.abs(s.at - s.from);
    const path = svg("path", {
      class: "arc",
      "stroke-width": (1 + 4.5 * Math.sqrt(s.weight / most)).toFixed(2),
      "stroke-opacity": (0.25 + 0.75 * (s.weight / most)).toFixed(2),
      d: `M${x(s.from)} ${base} C${x(s.from)} ${base - rise(d) * 1.3} ` +
          `${x(s.at)} ${base - rise(d) * 1.3} ${x(s.at)} ${base}`
    });
    hover(
        path,
        `${tokens[s.at]} \u2192 ${tokens[s.from]}\nweight ` +
            `${show(s.weight, 4)}, distance ${d}`);
    path.addEventListener("pointerenter", () => {
      root.classList.add("dim");
      path.classList.add("on");
      [s.at, s.from].forEach((i) => names[i].classList.add("on"));
    });
    path.addEventListener("pointerleave", () => {
      root.classList.remove("dim");
      path.classList.remove("on");
      names.forEach((node) => node.classList.remove("on"));
    });
    root.append(path);
  }
  root.append(...names);
  return el(
      "section", {class: "card wide-card"}, el("h3", {}, "Strongest earlier piece"),
      el("p", {class: "note"},
         "An arc connects each piece to the earlier piece with the largest " +
             "weight in the state after its step. Thicker arcs are larger " +
             "weights (ATR, figure 4)."),
      el("div", {class: "scroll"}, root));
}

function drawUnit(s) {
  const u = data.units[state.unit], numbers = s.units[state.unit];
  const pick =
      el("select", {"aria-label": "unit"},
         data.units.map((unit, i) => el("option", {value: i}, unitTitle(unit))));
  pick.value = state.unit;
  pick.addEventListener("change", () => { state.unit = Number(pick.value); draw(); });
  const parts = [
    el("h2", {}, "Memory and gates"),
    el("div", {class: "bar", style: "margin:0 0 14px"}, el("span", {class: "soft"}, "unit"), pick)
  ];
  if (!u.gates)
    return [
      ...parts, el("p", {class: "note"}, `The unit ${u.unit} has no input and forget gates.`)
    ];
  const tokens = tokensOf(u, s);
  return [
    ...parts, memoryCard(u, tokens, numbers), gatesCard(u, tokens, numbers),
    arcsCard(u, tokens, numbers)
  ];
}

// --- all sentences
function drawOverview() {
  overview.replaceChildren();
  if (!data.units.length) return;
  const count = data.sentences.filter((s) => s.units.length).length, u = data.units[state.unit],
        total = data.overall[state.unit];
  const mean = (numbers, values) =>
      numbers.sentences.reduce((sum, n, i) => sum + n * values[i], 0) /
      numbers.sentences.reduce((a, b) => a + b, 0);
  overview.append(
      el("h2", {}, count === 1 ? "All units" : `All units over ${show(count)} sentences`));
  const cells = (i) => {
    const t = data.overall[i];
    return t ? [mean(t, t.input), mean(t, t.forget), t.pearson_means, t.pearson_values].map(
                   (x) => el("td", {class: "number"}, x === null ? "none" : show(x, 3)))
             : [el("td", {class: "number", colspan: 4}, "no gates")];
  };
  overview.append(
      el("table", {},
         el("thead", {},
            el("tr", {}, el("th", {}, "unit"), el("th", {}, "reads"),
               el("th", {class: "number"}, "mean input gate"),
               el("th", {class: "number"}, "mean forget gate"),
               el("th", {class: "number"}, "Pearson, means by position"),
               el("th", {class: "number"}, "Pearson, all gates"))),
         el("tbody", {class: "pick"}, data.units.map((unit, i) => {
           const row =
               el("tr", {class: i === state.unit ? "chosen" : ""}, el("td", {}, unitTitle(unit)),
                  el("td", {},
                     unit.step === "higher"
                         ? (unit.reads === "target" ? "the context" : "the forward states")
                         : `the ${unit.reads}, ${unit.direction}`),
                  cells(i));
           row.addEventListener("click", () => {
             state.unit = i;
             draw();
           });
           return row;
         }))));
  if (total && total.input.length > 1)
    overview.append(el("div", {style: "margin-top:16px"}, lineChart({
                         title: `Mean gates by position, ${unitTitle(u)}`,
                         xLabel: "position",
                         whole: true,
                         y: upTo(total),
                         xName: (p) => `position ${p}, ${show(total.sentences[p - 1])} ` +
                             `${total.sentences[p - 1] === 1 ? "sentence" : "sentences"}`,
                         size: {width: 1080, height: 220},
                         series: [
                           {
                             name: "input gate",
                             color: "var(--c1)",
                             dots: true,
                             points: total.input.map((v, i) => [i + 1, v])
                           },
                           {
                             name: "forget gate",
                             color: "var(--c2)",
                             dots: true,
                             points: total.forget.map((v, i) => [i + 1, v])
                           }
                         ]
                       })));
}

function draw() {
  tip.hide();
  const s = data.sentences[state.sentence];
  choice.value = state.sentence;
  before.disabled = state.sentence === 0;
  after.disabled = state.sentence === data.sentences.length - 1;
  view.replaceChildren(
      el("dl", {class: "pair"}, el("dt", {}, "source"), el("dd", {}, s.source || "(empty line)"),
         el("dt", {}, "translation"), el("dd", {}, s.translation || "(empty)")));
  if (s.units.length) {
    view.append(
        el("p", {class: "note"},
           `log probability ${show(s.log_probability, 4)}, ` +
               `${show(s.target_pieces.length)} target pieces, ` +
               `${show(s.source_pieces.length)} source pieces, </s> included.`));
    view.append(...drawAttention(s), ...drawUnit(s));
  } else {
    view.append(el("p", {class: "note"}, "Blank lines are not passed to the model."));
  }
  drawOverview();
}
draw();
