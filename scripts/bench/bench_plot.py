#!/usr/bin/env python3
"""Plots the results of nmt-bench: bench_plot.py [--out DIRECTORY] FILE.json... reads reports of
`nmt-bench --format json` and writes

  bench-roofline.png   matmuls, matrix units, attention and decoding steps under the roofline of
                       FMA peak, copy and read bandwidth (Williams et al., CACM 2009), and the
                       fraction of the copy bandwidth that the element-wise units reach
  bench-step.png       training steps, stacked by part, each next to its lower bound

A figure without data is not written. matplotlib comes from the environment, or into .venv as
scripts/bench/pytorch/compare_pytorch.py does."""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from common import arguments  # noqa: E402
from common.system import ensure_packages  # noqa: E402

STYLES = {"products": ("o", "#33658a", "products"),
          "products packed before": (".", "#86bbd8", "products, packed before"),
          "recurrences": ("s", "#b35900", "recurrences of matrix units"),
          "attention": ("^", "#2e7d32", "attention"),
          "decoding": ("D", "#7b1fa2", "decoding steps")}

COLUMNS = ("table", "name", "real_time", "flops", "bytes", "share", "floor",
           "peak_flops_per_second", "read_bytes_per_second", "copied_bytes_per_second")


def read(paths):
    """The rows of all files, and the machine description of the first."""
    documents = [arguments.read_object(path, "report of nmt-bench --format json", "benchmarks",
                                       "context") for path in paths]
    rows = []
    for path, document in zip(paths, documents):
        found = [row for row in document["benchmarks"] if "error_occurred" not in row]
        if missing := [key for row in found for key in COLUMNS if key not in row]:
            arguments.fail(f"{path}: is no report of nmt-bench --format json: "
                           f"a row has no {missing[0]}")
        rows += found
    return rows, documents[0]["context"]


def intensity(row):
    """Arithmetic intensity: operations per byte of minimum traffic; a matmul moves its
    three matrices."""
    shape = re.search(r" M (\d+) N (\d+) K (\d+)", row["name"])
    if row["table"].startswith("products") and shape:
        m, n, k = map(int, shape.groups())
        return row["flops"] / (4 * (m * k + k * n + m * n))
    return row["flops"] / row["bytes"] if row["bytes"] else None


def machine(context):
    return f"{context['program']}, {context['date'][:10]}"


def roofline(rows, context, folder, plt):
    points = [(row, intensity(row)) for row in rows if row["table"] in STYLES and row["flops"]]
    points = [(row, x) for row, x in points if x]
    scans = [row for row in rows if row["table"] == "recurrences" and not row["flops"]]
    if not points and not scans:
        return None
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 2 + 0.26 * max(len(scans), 18)),
                                         width_ratios=[3, 2])
    if points:
        peak = max(row["peak_flops_per_second"] for row, _ in points) * 1e-9
        low, high = min(x for _, x in points) / 2, max(x for _, x in points) * 2
        for name, rate in (("reading", "read_bytes_per_second"),
                           ("copying", "copied_bytes_per_second")):
            roof = max(row[rate] for row, _ in points) * 1e-9
            ridge = peak / roof
            left.plot([low, ridge, high], [low * roof, peak, peak],
                      "-" if name == "reading" else "--", color="#777777", lw=1,
                      label=f"{name} {roof:.0f} GB/s, arithmetic {peak:.0f} GFLOP/s")
        for table, (marker, color, label) in STYLES.items():
            here = [(x, row["flops"] / row["real_time"] * 1e-6)
                    for row, x in points if row["table"] == table]
            if here:
                left.plot(*zip(*here), marker, color=color, label=label, ms=5, ls="")
        left.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="GFLOP/s")
        left.legend(fontsize=7)
        left.set_title("Above a roof of memory: what lies in a cache", fontsize=9)
    # without few long sentences
    scans = [row for row in scans if int(row["name"].split(" T ")[1].split()[0]) <= 100]
    names = [row["name"].split(" T ")[0] for row in scans]
    right.barh(names, [100 * row["share"] for row in scans],
               color=["#33658a" if "forward" in name else "#b35900" for name in names])
    right.axvline(100, color="#777777", lw=1)
    right.tick_params(axis="y", labelsize=7)
    right.invert_yaxis()
    right.set_xlabel("per cent of the copying rate, buffers past the cache")
    figure.suptitle(machine(context), fontsize=8)
    return save(figure, folder / "bench-roofline.png", plt)


def steps(rows, context, folder, plt):
    parts = [row
             for row in rows if row["table"] == "step" and not row["name"].endswith(": whole step")]
    models = list(dict.fromkeys(row["name"].rsplit(": ", 1)[0] for row in parts))
    if not models:
        return None
    names = list(dict.fromkeys(row["name"].rsplit(": ", 1)[1].removesuffix(", back")
                               for row in parts))
    colors = {name: plt.get_cmap("tab20")(i % 20) for i, name in enumerate(names)}
    figure, axis = plt.subplots(figsize=(13, 1.8 + 0.75 * len(models)))
    for place, model in enumerate(models):
        here = [row for row in parts if row["name"].rsplit(": ", 1)[0] == model]
        total = sum(row["real_time"] for row in here)
        for offset, height, key, alpha in ((-0.12, 0.42, "real_time", 1.0),
                                           (0.27, 0.22, "floor", 0.55)):
            begin = 0
            for name in names:
                size = sum(row[key]
                           for row in here if row["name"].rsplit(": ", 1)[1].removesuffix(", back")
                           == name) / total * 100
                axis.barh(place + offset, size, height, left=begin, color=colors[name], alpha=alpha,
                          label=name if place == 0 and key == "real_time" else None)
                begin += size
        axis.text(100.5, place - 0.12, f"{total:.0f} ms", va="center", fontsize=8)
    axis.set_yticks(range(len(models)), models, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 108)
    axis.set_xlabel("per cent of the step; the thin bar: the same parts at their floors")
    axis.legend(fontsize=7, ncols=4, loc="upper center",
                bbox_to_anchor=(0.45, -0.35 / len(models) - 0.08))
    figure.suptitle(machine(context), fontsize=8)
    return save(figure, folder / "bench-step.png", plt)


def save(figure, path, plt):
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=arguments.file, metavar="FILE.json")
    parser.add_argument("--out", type=arguments.folder,
                        default=pathlib.Path(__file__).resolve().parents[2] / "docs/benchmarks",
                        help="folder (%(default)s)")
    args = parser.parse_args()
    rows, context = read(args.reports)
    ensure_packages("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = [path for path in (roofline(rows, context, args.out, plt),
                                 steps(rows, context, args.out, plt)) if path]
    if not written:
        sys.exit("bench_plot.py: the reports have no rows to plot")
    print("\n".join(map(str, written)))


if __name__ == "__main__":
    arguments.call(main)
