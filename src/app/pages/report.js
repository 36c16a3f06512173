// The page of nmt-report, drawn from the embedded data.

const C = [1, 2, 3, 4].map((i) => `var(--c${i})`);
const page = document.getElementById("page");
const {displays: d, validations: v} = data;
const zip = (xs, ys) => (ys ? xs.map((x, i) => [x, ys[i]]) : []);

function duration(seconds) {
  const s = Math.round(seconds), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  const two = (n) => String(n).padStart(2, "0");
  return s < 60 ? `${s} s` : h ? `${h}:${two(m)}:${two(s % 60)} h` : `${m}:${two(s % 60)} min`;
}

// --- head
const isText = data.task === "language-model";
const model = data.model, last = d.updates.length - 1;
document.title = `Training report: ${model.name}`;
page.append(el("h1", {}, model.name),
            el("p", {class: "soft"}, `Training report. ${model.summary}.`));
const tiles = [];
const tile = (value, label) =>
    tiles.push(el("div", {class: "tile"}, el("b", {}, value), el("span", {}, label)));
tile(show(data.progress.updates), "updates");
tile(show(data.progress.epochs, 3), "epochs");
if (last >= 0) tile(duration(d.seconds[last]), "wall time at the last line");
const title = {bleu: "BLEU", chrf: "chrF"};
if (data.best)
  tile(
      show(data.best.value, 4),
      `best ${title[data.best.metric] || data.best.metric}${isText ? " per word" : ""}, ` +
          `update ${show(data.best.updates)}`);
if (last >= 0)
  tile(
      show(d.perplexity[last], 4),
      isText ? "training perplexity per token, last" : "training perplexity, last");
if (data.speed !== null) tile(show(Math.round(data.speed)), "target tokens/s, mean");
const run = data.runs[data.runs.length - 1];
if (run && run.data) tile(`${show(run.data.weights / 1e6, 3)} M`, "weights");
page.append(el("div", {class: "tiles"}, tiles));

// --- curves
const epochAt = new Map([...zip(d.updates, d.epochs), ...zip(v.updates, v.epochs)]);
const curve = (options) => lineChart({
  xLabel: "update",
  xName: (u) => `update ${show(u)}, epoch ${show(epochAt.get(u), 3)}`,
  whole: true,
  x: range,
  ...options
});
const known = [...d.updates, ...v.updates];
const range = known.length ? [0, known.reduce((a, b) => Math.max(a, b))] : undefined;
const metric = (name) => zip(v.updates, v.metrics[name]);
page.append(
    el("h2", {}, "Curves"),
    el("div", {class: "cards"}, curve({
         title: isText ? "Loss (nats)" : "Loss (nats per target token)",
         series: [
           {
             name: isText ? "training, per token" : "training, label-smoothed",
             color: C[0],
             points: zip(d.updates, d.loss)
           },
           {
             name: isText ? "development, per word" : "development, cross-entropy",
             color: C[1],
             dots: true,
             points: metric("cross-entropy")
           }
         ]
       }),
       curve({
         title: "Perplexity (logarithmic)",
         log: true,
         series: [
           {
             name: isText ? "training, per token" : "training",
             color: C[0],
             points: zip(d.updates, d.perplexity)
           },
           {
             name: isText ? "development, per word" : "development",
             color: C[1],
             dots: true,
             points: v.metrics.perplexity
                 ? metric("perplexity")
                 : metric("cross-entropy").map(([x, y]) => [x, Math.exp(y)])
           }
         ]
       }),
       d.alignment ? curve({
         title: "Guided alignment (nats per target token)",
         zero: true,
         series: [{
           name: "training, cross-entropy of attention",
           color: C[2],
           points: zip(d.updates, d.alignment)
         }]
       })
                   : [],
       isText ? [] : curve({
         title: "BLEU and chrF on the development set",
         zero: true,
         empty: "Not selected by valid-metrics.",
         series: [
           {name: "BLEU", color: C[0], dots: true, points: metric("bleu")},
           {name: "chrF", color: C[2], dots: true, points: metric("chrf")}
         ]
       }),
       curve({
         title: "Learning rate",
         zero: true,
         series: [{
           name: "at the last update of a log line",
           color: C[3],
           points: zip(d.updates, d.learn_rate)
         }]
       }),
       curve({
         title: "Gradient norm, before clipping",
         zero: true,
         series: [{
           name: "mean over the updates of a log line",
           color: C[1],
           points: zip(d.updates, d.gradient_norm)
         }]
       }),
       curve({
         title: "Speed (tokens per second, without padding)",
         zero: true,
         series: [
           ...(isText ? [] : [{
             name: "source",
             color: C[0],
             points: zip(d.updates, d.source_tokens_per_second)
           }]),
           {name: "target", color: C[1], points: zip(d.updates, d.target_tokens_per_second)}
         ]
       })));

// --- lengths
function histogram(title, counts, sampled, most, kind) {
  const total = counts.reduce((sum, [, n]) => sum + n, 0);
  const sum = counts.reduce((s, [length, n]) => s + length * n, 0);
  const quantile = (q) => {
    let seen = 0;
    for (const [length, n] of counts) if ((seen += n) >= q * total) return length;
    return 0;
  };
  const highest = counts.length ? counts[counts.length - 1][0] : 0;
  const shown = Math.min(highest, Math.max(2 * quantile(0.99), 10)),
        width = Math.max(1, Math.ceil((shown + 1) / 60));
  const bins = Array.from({length: Math.floor(shown / width) + 1}, () => 0);
  let beyond = 0;
  for (const [length, n] of counts) {
    if (length > shown) beyond += n;
    else bins[Math.floor(length / width)] += n;
  }
  const share = bins.map((n) => (100 * n) / total);
  const {root, sx, sy, a} = frame({
    title,
    x: [0, bins.length * width],
    y: [0, share.reduce((p, q) => Math.max(p, q), 0.1)],
    xLabel: "length in pieces",
    whole: true,
    size: {height: 210, left: 46}
  });
  bins.forEach((n, i) => {
    const from = i * width, to = from + width - 1, y = sy(share[i]);
    root.append(hover(
        svg("rect", {
          class: `bar ${kind}`,
          x: sx(from) + 0.5,
          width: Math.max(sx(from + width) - sx(from) - 1, 0.8),
          y,
          height: Math.max(a.height - a.bottom - y, 0)
        }),
        `${from === to ? `${from}` : `${from} to ${to}`} pieces: ` +
            `${show(n)} sentences, ${show(share[i], 3)} %`));
  });
  const over = counts.reduce((s, [length, n]) => s + (length > most ? n : 0), 0);
  const facts = [
    `mean ${show(sum / total, 3)}`, `median ${quantile(0.5)}`, `99 % are at most ${quantile(0.99)}`,
    `longest ${highest}`
  ];
  if (beyond) facts.push(`${show(beyond)} not shown`);
  facts.push(
      over ? `${show(over)} are longer than max-length ${most}`
           : `none longer than max-length ${most}`);
  return el(
      "section", {class: "card"}, el("h3", {}, title), root,
      el("p", {class: "note"}, `${facts.join("; ")}.`));
}
if (!isText) page.append(el("h2", {}, "Lengths of the training sentences"));
if (isText) {
  // The sentences of a language model are one stream.
} else if (run && run.lengths && run.lengths.pairs > 0) {
  const most = run.data.max_length;
  page.append(
      el("p", {class: "note"},
         run.lengths.pairs < run.data.pairs - run.data.held_out
             ? `Share of sentences (%) by length, from ${show(run.lengths.pairs)} ` +
                 `evenly spaced pairs of ${show(run.data.pairs)}.`
             : "Share of sentences (%) by length, over all " +
                 `${show(run.lengths.pairs)} training pairs.`),
      el("div", {class: "cards"},
         histogram("Source", run.lengths.source, run.lengths.pairs, most, ""),
         histogram("Target", run.lengths.target, run.lengths.pairs, most, "target")));
} else {
  page.append(
      el("p", {class: "note"}, "Not recorded: the training was started by an older nmt-train."));
}

// --- development set
if (!isText) page.append(el("h2", {}, "Development set"));
const dev = data.development;
if (dev) {
  const rows = [
    ["translated", `${show(dev.sentences)} sentences at update ${show(dev.updates)}`],
    [
      "BLEU",
      `${show(dev.bleu.score, 4)}` +
          (dev.bleu.half_width === null ? ""
                                        : ` (95 % interval ${show(dev.bleu.mean, 4)} ± ` +
                   `${show(dev.bleu.half_width, 3)}, bootstrap)`)
    ],
    ["", dev.bleu.signature], ["chrF", show(dev.chrf.score, 4)], ["", dev.chrf.signature],
    ["length ratio", `${show(dev.length_ratio, 4)} output words per reference word`],
    [
      "copied from the source",
      `${show(dev.copied)} outputs ` +
          `(${show((100 * dev.copied) / dev.sentences, 3)} %)`
    ],
    ["empty outputs", show(dev.empty)]
  ];
  page.append(
      el("table", {class: "facts"},
         rows.map(([name, text]) => el("tr", {}, el("th", {}, name), el("td", {}, text)))));
  page.append(
      el("h2", {}, `The ${dev.worst.length} worst development sentences`),
      el("p", {class: "note"},
         "Sorted by sentence chrF, lowest first. The reference can be the " +
             "cause of a low score."));
  for (const s of dev.worst) {
    page.append(
        el("dl", {class: "sentence"},
           el("div", {class: "head number"},
              `line ${show(s.line)} · chrF ${show(s.chrf, 3)} · BLEU ` +
                  `${show(s.bleu, 3)}`),
           el("dt", {}, "source"), el("dd", {}, s.source), el("dt", {}, "reference"),
           el("dd", {}, s.reference), el("dt", {}, "output"),
           el("dd", {}, s.output || el("span", {class: "soft"}, "(empty)"))));
  }
} else if (!isText) {
  page.append(
      el("p", {class: "note"},
         "No translations: no validation with BLEU or chrF has finished, or " +
             "the training was started by an older nmt-train."));
}

// --- events
if (data.events.length) {
  page.append(
      el("h2", {}, "Events"),
      el("table", {},
         el("tr", {}, el("th", {class: "number"}, "update"), el("th", {}, "event"),
            el("th", {}, "")),
         data.events.map(
             (e) =>
                 el("tr", {
                   class: ["skipped", "recovery", "corpus", "development"].includes(e.event)
                       ? "warning"
                       : ""
                 },
                    el("td", {class: "number"}, show(e.updates)), el("td", {}, e.event),
                    el("td", {}, e.text)))));
}

// --- runs
page.append(el("h2", {}, data.runs.length > 1 ? `The ${data.runs.length} runs` : "The run"));
if (!data.runs.length)
  page.append(
      el("p", {class: "note"},
         "Command, versions and machine are not recorded: the training was " +
             "started by an older nmt-train."));
for (const r of data.runs) {
  const rows = [
    ["started", `${r.time}, from update ${show(r.updates)}`], ["directory", r.folder],
    [
      "versions",
      `nmt ${r.versions.nmt}; compiler ${r.versions.compiler}; ` +
          `${r.versions.c_library}`
    ],
    [
      "machine",
      `${r.machine.processor || "unknown processor"}, ${r.machine.cores} ` +
          `cores, ${r.machine.memory_gb} GB; ${r.machine.system}`
    ],
    ["compute", `${r.machine.threads} threads, ${r.machine.instruction_set}`],
    [
      "text",
      isText ? `${r.data.files.join(", ")}: ${show(r.data.lines)} lines, ` +
              `${show(r.data.tokens)} tokens; ${show(r.data.development_lines)} ` +
              "development lines"
             : `${r.data.files.join(", ")}: ${show(r.data.pairs)} pairs, ` +
              `${show(r.data.held_out)} held out; ` +
              `${show(r.data.development_pairs)} development pairs`
    ],
    [
      "vocabulary",
      isText ? `${show(r.data.pieces)} pieces`
             : `${show(r.data.source_pieces)} source and ` +
              `${show(r.data.target_pieces)} target pieces`
    ]
  ];
  page.append(
      el("pre", {}, r.command),
      el("table", {class: "facts"},
         rows.map(([name, text]) => el("tr", {}, el("th", {}, name), el("td", {}, text)))),
      el("details", {}, el("summary", {}, "all settings"), el("pre", {}, r.settings)));
}
page.append(
    el("p", {class: "note", style: "margin-top:32px"},
       `Made by nmt-report ${data.nmt} from train.jsonl and ` +
           "development.json of the model directory."));
