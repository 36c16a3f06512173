"use strict";
// Shared by both pages. All text is inserted as text nodes, never as markup.

const NS = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null) continue;
    if (key === "style") node.style.cssText = value;
    else node.setAttribute(key, value);
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined)
      node.append(child instanceof Node ? child : String(child));
  return node;
}
const el = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS(NS, tag), attributes, children);

const data = JSON.parse(document.getElementById("data").textContent);

// The tooltip beside the pointer.
const tip = (() => {
  const box = el("div", {id: "tip", role: "status"});
  document.body.append(box);
  return {
    show(event, text) {
      box.textContent = text;
      const right = event.clientX + 14 + box.offsetWidth > innerWidth - 8;
      const below = event.clientY + 16 + box.offsetHeight > innerHeight - 8;
      box.style.left =
          Math.max(4, right ? event.clientX - 14 - box.offsetWidth : event.clientX + 14) + "px";
      box.style.top =
          Math.max(4, below ? event.clientY - 12 - box.offsetHeight : event.clientY + 16) + "px";
      box.style.visibility = "visible";
    },
    hide() { box.style.visibility = "hidden"; },
  };
})();
function hover(node, text) {
  node.addEventListener(
      "pointermove", (event) => tip.show(event, typeof text === "function" ? text(event) : text));
  node.addEventListener("pointerleave", tip.hide);
  return node;
}

// Formats a number with significant digits and thousands separators: 12,345; 0.0123; 1.5e-7.
function show(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "none";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US");
  if (size < 1e-4 || size >= 1e9)
    return value.toExponential(Math.max(digits - 2, 0)).replace("e+", "e");
  const decimals = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 8);
  return value.toLocaleString("en-US", {minimumFractionDigits: 0, maximumFractionDigits: decimals});
}

// Round numbers that cover [low, high] in about `count` steps.
function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    list.push(Number((i * step).toPrecision(12)));
  return list;
}
function logTicks(low, high) {
  const list = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const m of high / low > 300 ? [1] : high / low > 20 ? [1, 3] : [1, 2, 3, 5]) {
      const value = Number((m * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) list.push(value);
    }
  return list;
}

const axis = {width: 560, height: 250, left: 58, right: 14, top: 10, bottom: 40};

// Axes with ticks and labels; returns the drawing and the two scales.
function frame(options) {
  const a = {...axis, ...options.size};
  const [x0, x1] = options.x, [y0, y1] = options.y;
  const sx = (x) => a.left + ((x - x0) / (x1 - x0 || 1)) * (a.width - a.left - a.right);
  const place = options.log
      ? (y) => (Math.log(y) - Math.log(y0)) / (Math.log(y1) - Math.log(y0) || 1)
      : (y) => (y - y0) / (y1 - y0 || 1);
  const sy = (y) => a.height - a.bottom - place(y) * (a.height - a.top - a.bottom);
  const root =
      svg("svg", {viewBox: `0 0 ${a.width} ${a.height}`, role: "img", "aria-label": options.title});
  for (const y of options.log ? logTicks(y0, y1) : ticks(y0, y1, 4)) {
    root.append(
        svg("line", {class: "grid", x1: a.left, x2: a.width - a.right, y1: sy(y), y2: sy(y)}),
        svg("text", {x: a.left - 8, y: sy(y) + 4, "text-anchor": "end"}, show(y, 3)));
  }
  for (const x of ticks(x0, x1, 6)) {
    if (options.whole && !Number.isInteger(x)) continue;
    root.append(
        svg("line", {
          class: "axis",
          x1: sx(x),
          x2: sx(x),
          y1: a.height - a.bottom,
          y2: a.height - a.bottom + 4
        }),
        svg("text", {x: sx(x), y: a.height - a.bottom + 17, "text-anchor": "middle"}, show(x, 3)));
  }
  root.append(
      svg("line", {
        class: "axis",
        x1: a.left,
        x2: a.width - a.right,
        y1: a.height - a.bottom,
        y2: a.height - a.bottom
      }),
      svg("text", {x: (a.left + a.width - a.right) / 2, y: a.height - 4, "text-anchor": "middle"},
          options.xLabel));
  return {root, sx, sy, a};
}

function legend(items) {
  return el(
      "div", {class: "legend"},
      items.map((item) => el("span", {}, el("i", {style: `background:${item.color}`}), item.name)));
}

// A card with a line chart. series: {name, color, points: [[x, y], ...], dots}; points are sorted
// by x, y may be null.
function lineChart(options) {
  const series =
      options.series
          .map((s) => ({
                 ...s,
                 points: s.points.filter(([, y]) => Number.isFinite(y) && !(options.log && y <= 0))
               }))
          .filter((s) => s.points.length);
  const card = el("section", {class: "card"}, el("h3", {}, options.title));
  if (!series.length) {
    card.append(el("p", {class: "note"}, options.empty || "Nothing was recorded."));
    return card;
  }
  card.append(legend(series));
  const all = series.flatMap((s) => s.points), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const least = (list) => list.reduce((a, b) => Math.min(a, b)),
        most = (list) => list.reduce((a, b) => Math.max(a, b));
  let low = options.y ? options.y[0]
      : options.zero  ? 0
                      : least(ys),
      high = options.y ? options.y[1] : most(ys);
  if (low === high)
    [low, high] = options.log ? [low / 2, high * 2]
                              : [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2];
  if (!options.log && !options.y) {
    const extra = (high - low) * 0.05;
    high += extra;
    if (!options.zero) low -= extra;
  }
  const x = options.x || [least(xs), most(xs)];
  const {root, sx, sy, a} =
      frame({...options, x: x[0] === x[1] ? [x[0] - 1, x[1] + 1] : x, y: [low, high]});
  for (const s of series) {
    root.append(svg("path", {
      class: "series",
      stroke: s.color,
      d: s.points.map(([px, py], i) => `${i ? "L" : "M"}${sx(px).toFixed(1)} ${sy(py).toFixed(1)}`)
             .join("")
    }));
    if (s.dots || s.points.length === 1)
      for (const [px, py] of s.points)
        root.append(svg("circle", {cx: sx(px), cy: sy(py), r: 2.6, fill: s.color}));
  }
  const cross =
      svg("line", {class: "cross", y1: a.top, y2: a.height - a.bottom, visibility: "hidden"});
  const marks = series.map(
      (s) => svg(
          "circle",
          {r: 4, fill: s.color, stroke: "var(--card)", "stroke-width": 1.5, visibility: "hidden"}));
  const cover = svg("rect", {
    class: "cover",
    x: a.left - 6,
    y: 0,
    width: a.width - a.left - a.right + 12,
    height: a.height - a.bottom
  });
  root.append(cross, ...marks, cover);
  const nearest = (points, value) => {
    let lo = 0, hi = points.length - 1;
    while (hi - lo > 1) {
      const middle = (lo + hi) >> 1;
      if (points[middle][0] < value) lo = middle; else hi = middle;
    }
    return Math.abs(points[lo][0] - value) <= Math.abs(points[hi][0] - value) ? points[lo]
                                                                              : points[hi];
  };
  cover.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * a.width;
    const range = x[0] === x[1] ? [x[0] - 1, x[1] + 1] : x;
    const value = range[0] + ((px - a.left) / (a.width - a.left - a.right)) * (range[1] - range[0]);
    const at = nearest(all.slice().sort((p, q) => p[0] - q[0]), value)[0];
    const lines = [options.xName ? options.xName(at) : `${options.xLabel} ${show(at)}`];
    series.forEach((s, i) => {
      const [qx, qy] = nearest(s.points, at);
      const unit = options.unit ? " " + options.unit : "";
      const place = qx === at ? "" : ` (${options.xLabel} ${show(qx)})`;
      lines.push(`${s.name}: ${show(qy, 5)}${unit}${place}`);
      marks[i].setAttribute("cx", sx(qx));
      marks[i].setAttribute("cy", sy(qy));
      marks[i].setAttribute("visibility", "visible");
    });
    cross.setAttribute("x1", sx(at));
    cross.setAttribute("x2", sx(at));
    cross.setAttribute("visibility", "visible");
    tip.show(event, lines.join("\n"));
  });
  cover.addEventListener("pointerleave", () => {
    tip.hide();
    for (const node of [cross, ...marks]) node.setAttribute("visibility", "hidden");
  });
  card.append(root);
  return card;
}
