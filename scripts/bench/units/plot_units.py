#!/usr/bin/env python3
"""Plots the figures of compare_units.py: reads FOLDER/table.csv and FOLDER/curves.json and writes
bleu.png, speed.png, pareto.png and curves.png there. Needs matplotlib. A figure without data is not
written."""
import argparse
import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:  # --help works without it
    plt = None

COLUMNS = ("unit", "bleu", "ci", "parameters", "tokens_per_second", "ms_batch_1", "ms_batch_64")
BASE, OTHER = "#b35900", "#33658a"


def number(row, key):
    try:
        return float(row[key]) if row[key] else None
    except ValueError:
        arguments.fail(f"table.csv: {key} of {row['unit']} is '{row[key]}', expected a number")


def save(figure, folder, name):
    figure.tight_layout()
    figure.savefig(folder / name, dpi=110)
    plt.close(figure)
    return name


def bars(axis, rows, key, baseline, form, errors=None):
    values = [number(row, key) for row in rows]
    names = [row["unit"] for row in rows]
    axis.barh(names, values, xerr=errors, color=[BASE if name == baseline else OTHER
                                                 for name in names], ecolor="#555555", capsize=2)
    for place, value in enumerate(values):
        axis.text(0, place, " " + form.format(value), va="center", ha="left",
                  color="white", fontsize=8)
    axis.invert_yaxis()


def bleu(folder, rows, baseline):
    rows = sorted((row for row in rows if row["bleu"]), key=lambda row: -number(row, "bleu"))
    if not rows:
        return None
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 1.5 + 0.28 * len(rows)),
                                         width_ratios=[3, 2])
    bars(left, rows, "bleu", baseline, "{:.1f}", [number(row, "ci") for row in rows])
    left.set_xlabel("BLEU with 95 % interval")
    for row in rows:
        color = BASE if row["unit"] == baseline else OTHER
        right.plot(number(row, "parameters") / 1e6, number(row, "bleu"), "o", color=color)
        right.annotate(row["unit"], (number(row, "parameters") / 1e6, number(row, "bleu")),
                       fontsize=7, xytext=(3, 3), textcoords="offset points")
    right.set_xlabel("parameters, millions")
    right.set_ylabel("BLEU")
    right.margins(0.15)
    return save(figure, folder, "bleu.png")


def speed(folder, rows, baseline):
    rows = sorted((row for row in rows if row["tokens_per_second"]),
                  key=lambda row: -number(row, "tokens_per_second"))
    if not rows:
        return None
    decoded = [row for row in rows if row["ms_batch_1"]]
    figure, axes = plt.subplots(1, 2 if decoded else 1,
                                figsize=(11 if decoded else 7, 1.5 + 0.28 * len(rows)),
                                squeeze=False)
    bars(axes[0][0], rows, "tokens_per_second", baseline, "{:,.0f}")
    axes[0][0].set_xlabel("training, target tokens a second")
    if decoded:
        bars(axes[0][1], sorted(decoded, key=lambda row: number(row, "ms_batch_1")), "ms_batch_1",
             baseline, "{:.1f}")
        axes[0][1].set_xlabel("ms a decoded sentence, batch 1")
    return save(figure, folder, "speed.png")


def front(points):
    """The points (speed, BLEU, ...) that no other one beats in both, from the slowest on."""
    kept = []
    for point in sorted(points, key=lambda p: (-p[0], -p[1])):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept[::-1]


def group(unit):
    """The architecture of an overlay that is named ARCHITECTURE-UNIT, else ""."""
    return unit.partition("-")[0] if "-" in unit else ""


def pareto(folder, rows, baseline):
    """BLEU and speed of decoding in batches of 64. Overlays named ARCHITECTURE-UNIT have a color
    and a front for each architecture, and names on the fronts alone."""
    points = [(1e3 / number(row, "ms_batch_64"), number(row, "bleu"), row["unit"])
              for row in rows if row["bleu"] and row["ms_batch_64"]]
    if not points:
        return None
    groups = sorted({group(unit) for _, _, unit in points})
    several = len(groups) > 1
    figure, axis = plt.subplots(figsize=(9, 6))

    def draw_front(best, color, width):
        axis.plot([p[0] for p in best], [p[1] for p in best], color=color, linewidth=width,
                  zorder=0)

    draw_front(front(points), "#bbbbbb" if several else "#999999", 4 if several else 1)
    for name, color in zip(groups, plt.get_cmap("Dark2").colors):
        mine = [point for point in points if group(point[2]) == name]
        best = front(mine)
        if several:
            draw_front(best, color, 1)
            axis.plot([], [], "o-", color=color, label=name or "other")
        for point in mine:
            named = not several or point in best or point[2] == baseline
            shade = color if several else BASE if point[2] == baseline else OTHER
            axis.plot(*point[:2], "o", color=shade, markersize=6 if named else 3,
                      markeredgecolor="black" if several and point[2] == baseline else shade)
            if named:
                axis.annotate(point[2].removeprefix(f"{name}-"), point[:2], fontsize=8,
                              xytext=(4, 3), textcoords="offset points")
    if several:
        axis.legend(fontsize=8)
    axis.set_xlabel("decoded sentences a second, batch 64")
    axis.set_ylabel("BLEU")
    axis.margins(0.1)
    axis.grid(alpha=0.3)
    return save(figure, folder, "pareto.png")


def curves(folder, points, baseline):
    points = {unit: curve for unit, curve in points.items() if len(curve) > 1}
    if not points:
        return None
    figure, axis = plt.subplots(figsize=(9, 5.5))
    colors = plt.get_cmap("tab20").colors
    for place, (unit, curve) in enumerate(points.items()):
        width, color = (2.6, "black") if unit == baseline else (1.2, colors[place % len(colors)])
        axis.plot(*zip(*curve), label=unit, linewidth=width, color=color)
    axis.set_xlabel("updates")
    axis.set_ylabel("development BLEU")
    axis.legend(fontsize=8, ncol=2)
    axis.grid(alpha=0.3)
    return save(figure, folder, "curves.png")


def is_point(value):
    return (isinstance(value, list) and len(value) == 2
            and all(isinstance(each, float | int) for each in value))


def read_curves(path):
    """Unit -> pairs of updates and BLEU."""
    what, advice = "file of curves", "remove it; compare_units.py writes it"
    points = arguments.read_object(path, what, advice=advice)
    for unit, curve in points.items():
        if not isinstance(curve, list) or not all(map(is_point, curve)):
            arguments.fail(f"{path}: is no {what}: the curve of {unit} is damaged; {advice}")
    return points


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=arguments.folder, help="work directory of compare_units.py")
    parser.add_argument("baseline", help="unit that the figures highlight, as the table names it")
    return parser.parse_args()


def main():
    args = options()
    folder, baseline = args.folder, args.baseline
    for name in ("table.csv", "curves.json"):
        if not (folder / name).is_file():
            sys.exit(f"{folder / name}: is missing; compare_units.py writes it")
    table = csv.DictReader(arguments.read_text(folder / "table.csv").splitlines(keepends=True))
    if missing := [name for name in COLUMNS if name not in (table.fieldnames or ())]:
        arguments.fail(f"{folder / 'table.csv'}: has no column {missing[0]}; compare_units.py "
                       "writes it")
    rows = list(table)
    points = read_curves(folder / "curves.json")
    if plt is None:
        sys.exit("matplotlib is missing: pip install matplotlib")
    names = [bleu(folder, rows, baseline), speed(folder, rows, baseline),
             pareto(folder, rows, baseline), curves(folder, points, baseline)]
    print("figures: " + (", ".join(filter(None, names)) or "none, there is nothing to show yet"))


if __name__ == "__main__":
    arguments.call(main)
