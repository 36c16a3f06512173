#!/usr/bin/env python3
"""Trains language models of several units with the same settings and prints a Markdown table of their perplexity (as
table 7 of the LRN paper, Zhang & Sennrich 2019).

    language_models.py train.txt valid.txt --units lstm gru atr lrn olrn --work DIR [-- OPTION...]

Options after -- go to nmt-train; --jobs trainings run side by side. A training in DIR that is complete is not repeated.
The perplexity is that of the best checkpoint, with its 95 % bootstrap interval over the lines (nmt-score)."""
import argparse
import concurrent.futures
import math
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Run:
    """One training, and what its log and nmt-score say about it."""

    def __init__(self, programs, train, valid, unit, seed, work, options):
        model = work / f"{unit}-{seed}"
        log = model.with_suffix(".log")
        if not log.exists() or "training is over" not in log.read_text():
            command = [programs / "nmt-train", "--task", "language-model", "--vocab-type", "words", train, "--valid-sets", valid,
                       "--model", model, "--unit", unit, "--seed", str(seed), *options]
            with log.open("w") as file:
                subprocess.run(command, stderr=file, stdout=file, check=True)
        text = log.read_text()
        self.weights = int(re.search(r"([\d,]+) weights", text)[1].replace(",", ""))
        self.speed = statistics.median(map(float, re.findall(r"([\d.]+) (?:trg )?tokens/s", text)))
        scored = subprocess.run([programs / "nmt-score", "-m", model, valid, "--parts", "16", "--output", "/dev/null"],
                                capture_output=True, text=True, check=True)
        self.perplexity, self.low, self.high = map(float, re.search(r"perplexity ([\d.]+) per word, 95 % interval ([\d.]+) to ([\d.]+)", scored.stderr).groups())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("--units", nargs="+", default=["lstm", "gru", "atr", "lrn", "olrn", "glrn", "elrn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side (%(default)s)")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        options = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    args = parser.parse_args(arguments)
    args.work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {(unit, seed): pool.submit(Run, args.programs, args.train, args.valid, unit, seed, args.work, options)
                for unit in args.units for seed in args.seeds}
        print("| unit | weights | perplexity | words/s of training |\n|---|---|---|---|", flush=True)
        for unit in args.units:
            done = [runs[unit, seed].result() for seed in args.seeds]
            perplexity = math.exp(statistics.mean(math.log(run.perplexity) for run in done))
            spread = (f"± {statistics.stdev(run.perplexity for run in done):.1f}" if len(done) > 1
                      else f"({done[0].low:.1f} to {done[0].high:.1f})")
            print(f"| {unit} | {done[0].weights:,} | {perplexity:.1f} {spread} | {statistics.median(run.speed for run in done):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
