#!/usr/bin/env python3
"""How long recurrent units remember: trains each unit to recall the first word of a generated
sentence at its end, and writes accuracy by distance as a table and as a picture (ELSTM, section 2,
by experiment).

  scripts/bench/units/memory_length.py --work memory lrn gru lstm:gate-init=none

A sentence is one of 8 keys, 0 to D - 1 random words of another 8, and a question mark; its tags are
the key at the question mark and "_" elsewhere. Guessing is right in 12.5 % of the cases. The model
is a forward tagger with one layer (nmt-train --task tagging --tagging-network basic). A unit is a
name, optionally followed by a colon and options of nmt-train. Finished trainings in --work are
kept; other widths, updates or distances need another --work. Programs are taken from
$NMT_BUILD/bin, else from build/bin."""
import argparse
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments, inputs, system  # noqa: E402
from common.svg import COLORS, Chart, write  # noqa: E402

KEYS = [f"key{i}" for i in range(8)]
FILLERS = [f"word{i}" for i in range(8)]


def sentences(count, distance, seed):
    """Pairs of words and tags; distances cycle through 1..distance, so that all occur
    equally often."""
    draw = random.Random(seed)
    for i in range(count):
        d = i % distance + 1
        key = draw.choice(KEYS)
        yield [key, *(draw.choice(FILLERS) for _ in range(d - 1)), "?"], ["_"] * d + [key]


def write_columns(path, pairs):
    path.write_text("\n".join("".join(f"{word}\t{tag}\n" for word, tag in zip(*pair))
                              for pair in pairs), encoding="utf-8")


def run(command, log):
    with open(log, "w", encoding="utf-8") as file:
        done = subprocess.run([str(word) for word in command], stdout=file,
                              stderr=subprocess.STDOUT)
    if done.returncode:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
                 if line.startswith("error")]
        sys.exit(f"error: {command[0].name}: status {done.returncode}: "
                 f"{(lines or ['see ' + str(log)])[-1]}")


def recalled(programs, model, test):
    """Shares of recalled keys at distance 1, 2, ..."""
    text = "\n".join(" ".join(words) for words, _ in test) + "\n"
    done = subprocess.run([programs / "nmt-tag", "-m", model], input=text,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: nmt-tag: {done.stderr.strip().splitlines()[-1]}")
    right, count = {}, {}
    for (words, tags), line in zip(test, done.stdout.splitlines(), strict=True):
        d = len(words) - 1
        count[d] = count.get(d, 0) + 1
        right[d] = right.get(d, 0) + (line.split()[-1] == tags[-1])
    return [right[d] / count[d] for d in sorted(count)]


def length(shares):
    """The largest distance up to which at least half of the keys are recalled."""
    found = 0
    for d, share in enumerate(shares, 1):
        if share < 0.5:
            break
        found = d
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="+", metavar="UNIT", help="gru, lrn:gate-init=none, ...")
    parser.add_argument("--work", type=arguments.new_folder, required=True,
                        help="directory of data, models, table.md and memory.svg")
    parser.add_argument("--distance", type=arguments.whole(2), default=100,
                        help="largest distance (%(default)s)")
    parser.add_argument("--width", type=arguments.whole(), default=64,
                        help="width of the layer (%(default)s)")
    parser.add_argument("--updates", type=arguments.whole(), default=1500,
                        help="updates of each training (%(default)s)")
    parser.add_argument("--seed", type=arguments.whole(0), default=1,
                        help="random seed (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="threads of each program (%(default)s)")
    args = parser.parse_args()
    programs = system.programs()
    if len(set(args.units)) < len(args.units):
        parser.error(f"{' '.join(args.units)}: a unit is given twice")
    arguments.need_programs(programs, "nmt-train", "nmt-tag")
    args.work.mkdir(parents=True, exist_ok=True)
    train, valid = args.work / "train.tsv", args.work / "valid.tsv"
    write_columns(train, sentences(100 * args.distance, args.distance, args.seed))
    write_columns(valid, sentences(2 * args.distance, args.distance, args.seed + 1))
    test = list(sentences(50 * args.distance, args.distance, args.seed + 2))
    curves = {}
    for unit in args.units:
        name, _, options = unit.partition(":")
        folder = args.work / (unit.replace(":", "_").replace("=", "_").replace(",", "_")
                              + f"-{args.seed}")
        command = [programs / "nmt-train", train, "--task", "tagging", "--tagging-network", "basic",
                   "--unit", name, "--valid-sets", valid, "--model", folder,
                   "--enc-depth", "1", "--dim-emb", "32", "--dim-rnn", args.width,
                   "--dim-char-rnn", "0", "--dropout", "0", "--max-length", args.distance + 1,
                   "--mini-batch-words", "2048", "--learn-rate", "0.003", "--lr-warmup", "100u",
                   "--after", f"{args.updates}u", "--valid-freq", "250u", "--save-freq", "250u",
                   "--early-stopping", "0", "--precision", "float32", "--seed", args.seed,
                   "--cpu-threads", args.threads,
                   *(f"--{option}" for option in options.split(",") if option)]
        try:
            inputs.reuse(args.work / f"{folder.name}.json",
                         inputs.of_command(command[1:], without=("--model", "--cpu-threads")),
                         folder)
        except inputs.Changed as error:
            sys.exit(f"error: {error}")
        if not (folder / "done").exists():
            run(command, args.work / f"{folder.name}.log")
            (folder / "done").touch()
        curves[unit] = recalled(programs, folder, test)
        print(f"{unit}: at least half of the keys up to distance {length(curves[unit])}",
              flush=True)
    marks = [d for d in (1, 2, 5, 10, 20, 50, 100, 200, 500) if d <= args.distance]
    rows = ["| unit | half of the keys up to | " + " | ".join(f"distance {d}" for d in marks)
            + " |", "|" + "---|" * (len(marks) + 2)]
    rows += [f"| `{unit}` | {length(shares)} | "
             + " | ".join(f"{100 * shares[d - 1]:.0f} %" for d in marks) + " |"
             for unit, shares in curves.items()]
    (args.work / "table.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    chart = Chart(f"recalled keys by distance, width {args.width}, {args.updates} updates",
                  (1, args.distance), (0, 1.02), "distance, words", "share of recalled keys",
                  size=(560, 280))
    window = max(1, args.distance // 40)
    for i, (unit, shares) in enumerate(curves.items()):
        smooth = [sum(part) / len(part) for part in (shares[max(0, d - window):d + window + 1]
                                                     for d in range(len(shares)))]
        chart.line(list(enumerate(smooth, 1)), COLORS[i % len(COLORS)],
                   1.5 if i < len(COLORS) else 0.8, unit)
    write(args.work / "memory.svg", [chart])
    print(f"written: {args.work / 'table.md'}, memory.svg")


if __name__ == "__main__":
    arguments.call(main)
