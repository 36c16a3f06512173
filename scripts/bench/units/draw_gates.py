#!/usr/bin/env python3
"""Draws figures of the units' papers from the numbers of nmt-explain, as SVG files.

  nmt-explain -m model-atr -i newstest2014.en --sentences 3003 --json atr.json -o atr.html
  scripts/bench/units/draw_gates.py surface FILE.svg
  scripts/bench/units/draw_gates.py positions FILE.svg atr.json
  scripts/bench/units/draw_gates.py strongest FILE.svg atr.json
  scripts/bench/units/draw_gates.py memory FILE.svg lrn.json
  scripts/bench/units/draw_gates.py gradients FILE.svg *.json

surface    ATR, figure 2: the twin gates over their two inputs
positions  ATR, figure 3: mean gates by position, and their correlation
strongest  ATR, figure 4: the earlier piece with the largest weight
memory     LRN, figure 1: how long every piece stays in the state
gradients  LRN, section 5: gradient norm of the state by distance

ATR: Zhang et al., EMNLP 2018. LRN: Zhang & Sennrich, ACL 2019."""
import argparse
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.svg import COLORS, Chart, write  # noqa: E402

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def logit(p):
    return math.log(p / (1 - p))


def surface(_, args):
    """Input gate s(q + p) and forget gate s(q - p) over p = h'U and q = xW. Their contours are
    straight lines."""
    charts, r = [], 4
    for sign, name in ((1, "input gate s(q + p)"), (-1, "forget gate s(q - p)")):
        chart = Chart(name, (-r, r), (-r, r), "p = h'U", "q = xW", size=240)
        bounds = [-3 * r, *(logit(level) for level in LEVELS), 3 * r]
        for place, (low, high) in enumerate(zip(bounds, bounds[1:])):
            corners = [(-r, low + sign * r), (r, low - sign * r), (r, high - sign * r),
                       (-r, high + sign * r)]
            chart.polygon(corners, f"hsl(210,60%,{95 - 6 * place}%)")
        for level in (0.1, 0.5, 0.9):
            middle = logit(level)
            chart.line([(-r, middle + sign * r), (r, middle - sign * r)], "#334", 0.5)
            chart.label(sign * middle / 2, middle / 2, f"{level:g}")
        charts.append(chart)
    return charts


def unit_index(data, name):
    names = [unit["name"] for unit in data["units"]]
    with_gates = [unit["name"] for unit in data["units"] if unit["gates"]]
    if name is not None and name not in names:
        sys.exit(f"error: unit {name}: the model has {', '.join(names)}")
    if not with_gates:
        sys.exit(f"error: no unit of the model has gates: {', '.join(names)}")
    if name is not None and name not in with_gates:
        sys.exit(f"error: unit {name}: has no gates; those with gates are {', '.join(with_gates)}")
    return names.index(name or with_gates[0])


def sentence_of(data, line):
    sentences = [s for s in data["sentences"] if s["units"] and line in (None, s["line"])]
    if not sentences:
        sys.exit(f"error: line {line}: not in the file, or blank")
    return sentences[0]


def positions(files, args):
    data = files[0]
    which = unit_index(data, args.unit)
    numbers, unit = data["overall"][which], data["units"][which]
    steps = sum(n >= args.at_least for n in numbers["sentences"])
    if steps < 2:
        sys.exit(f"error: fewer than two positions occur in {args.at_least} sentences")
    curves = [("input gate", numbers["input"][:steps]), ("forget gate", numbers["forget"][:steps])]
    values = [v for _, curve in curves for v in curve]
    margin = 0.05 * (max(values) - min(values)) or 0.05
    r = correlation(*(curve for _, curve in curves))
    title = (f"{unit['unit']}, {unit['name']}: "
             f"{'a gate is constant' if r is None else f'r = {r:.4f}'} over positions 1 to "
             f"{steps}, {numbers['sentences'][0]} sentences")
    chart = Chart(title, (1, steps), (min(values) - margin, max(values) + margin), "position",
                  "mean over channels and sentences", size=(460, 240))
    for (name, curve), color in zip(curves, COLORS):
        chart.line(list(enumerate(curve, 1)), color, 1.5, name)
    return [chart]


def correlation(xs, ys):
    """Pearson's; None if one side is constant."""
    if min(xs) == max(xs) or min(ys) == max(ys):
        return None
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return (sum((x - mx) * (y - my) for x, y in zip(xs, ys))
            / math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys)))


def pieces_of(data, which, sentence):
    pieces = (
        sentence["source_pieces" if data["units"][which]["reads"] == "source" else "target_pieces"])
    if len(pieces) < 2:
        sys.exit(
            f"error: line {sentence['line']}: {data['units'][which]['name']} reads a single piece")
    return pieces


def strongest(files, args):
    data = files[0]
    which = unit_index(data, args.unit)
    sentence = sentence_of(data, args.line)
    pieces = pieces_of(data, which, sentence)
    links = sentence["units"][which]["strongest"]
    widest = max(link["weight"] for link in links)
    chart = Chart(f"{data['units'][which]['name']}: the earlier piece with the largest weight in "
                  "the state", (-0.5, len(pieces) - 0.5), (0, max(2, len(pieces) / 2)), "", "",
                  size=(640, 150), axes=False)
    for link in links:
        a, b = link["at"], link["from"]
        chart.arc(b, a, "#33658a", 0.4 + 2.6 * link["weight"] / widest,
                  f"{pieces[b]} to {pieces[a]}: {link['weight']:.3g}")
    for place, piece in enumerate(pieces):
        chart.label(place, 0, piece.replace("\u2581", "") or "\u2581", below=True)
    return [chart]


def memory(files, args):
    data = files[0]
    which = unit_index(data, args.unit)
    sentence = sentence_of(data, args.line)
    pieces, curves = pieces_of(data, which, sentence), sentence["units"][which]["memory"]
    top = max(max(curve) for curve in curves)
    chart = Chart(f"{data['units'][which]['unit']}, {data['units'][which]['name']}: "
                  "weight of every piece in the state after each step", (0, len(pieces) - 1),
                  (0, 1.05 * top), "", "mean over channels", size=(640, 260),
                  x_labels=[p.replace("\u2581", "") or "\u2581" for p in pieces])
    for place, curve in enumerate(curves):
        step = -1 if data["units"][which]["direction"] == "backward" else 1
        chart.line([(place + step * d, weight) for d, weight in enumerate(curve)],
                   COLORS[place % len(COLORS)], 1.2, pieces[place], legend=False)
    return [chart]


def gradients(files, args):
    curves = []
    for path, data in zip(args.json, files):
        numbers = [n for n in (data["overall"][i] for i in range(len(data["units"])) if args.unit
                               in (None, data["units"][i]["name"])) if n and n["gradient"]]
        if numbers:
            curves.append((path.stem if args.names else data["units"][0]["unit"],
                           numbers[0]["gradient"][:args.distance]))
    if not curves:
        sys.exit("error: no element-wise unit in these files")
    low = min(max(v, 1e-6) for _, curve in curves for v in curve)
    chart = Chart("gradient of a state with respect to an earlier one",
                  (1, max(len(c) for _, c in curves)), (math.floor(math.log10(low)), 0.2),
                  "distance, steps", "log10 of the norm (identity: 0)", size=(460, 240))
    for (name, curve), color in zip(curves, COLORS):
        chart.line([(d, math.log10(max(v, 1e-6))) for d, v in enumerate(curve, 1)],
                   color, 1.5, name)
    return [chart]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = {f.__name__: f for f in (surface, positions, strongest, memory, gradients)}
    parser.add_argument("figure", choices=figures)
    parser.add_argument("svg", type=arguments.new_file, help="output file")
    parser.add_argument("json", nargs="*", type=pathlib.Path, help="files of nmt-explain --json")
    parser.add_argument("--unit", help="name of a layer, such as encoder.layer_0.forward (default: "
                                       "the first with gates)")
    parser.add_argument("--line", type=arguments.whole(),
                        help="line of the sentence (default: the first)")
    parser.add_argument("--at-least", type=arguments.whole(), default=100,
                        help="sentences that reach a position for it to count (%(default)s)")
    parser.add_argument("--distance", type=arguments.whole(2), default=20,
                        help="largest distance (%(default)s)")
    parser.add_argument("--names", action="store_true",
                        help="name the files in the legend instead of the units")
    args = parser.parse_args()
    if (args.figure == "surface") == bool(args.json):
        parser.error(
            f"{args.figure} takes {'no file' if args.json else 'a file'} of nmt-explain --json")
    files = []
    for path in args.json:
        try:
            files.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as problem:
            sys.exit(f"error: {path}: {getattr(problem, 'strerror', None) or problem}")
        if not isinstance(files[-1], dict) or files[-1].get("format") != "nmt-explain":
            sys.exit(f"error: {path}: not a file of nmt-explain --json")
    try:
        charts = figures[args.figure](files, args)
    except (IndexError, KeyError, TypeError) as problem:
        sys.exit(f"error: {args.json[0]}: damaged, or of another version: {type(problem).__name__} "
                 f"{problem}")
    write(args.svg, charts)


if __name__ == "__main__":
    arguments.call(main)
