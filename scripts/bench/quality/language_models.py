#!/usr/bin/env python3
"""Trains language models of several units with the same settings and prints a Markdown table of
their perplexity (as table 7 of the LRN paper, Zhang & Sennrich 2019).

    language_models.py train.txt valid.txt --units lstm gru atr lrn olrn --work DIR [-- OPTION...]

Options after -- go to nmt-train; --jobs trainings run side by side. A training in DIR that is
complete is not repeated. The perplexity is that of the best checkpoint, with its 95 % bootstrap
interval over the lines (nmt-score)."""
import math
import re
import statistics
import subprocess

import trainings
from common import arguments


class Run:
    """One training, and what its log and nmt-score say about it."""

    def __init__(self, args, unit, seed, options):
        model, log = trainings.train(args, f"{unit}-{seed}",
                                     ["--task", "language-model", "--vocab-type", "words",
                                      "--unit", unit, "--seed", str(seed), *options])
        self.weights = int(re.search(r"([\d,]+) weights", log)[1].replace(",", ""))
        self.speed = statistics.median(map(float, re.findall(r"([\d.]+) (?:trg )?tokens/s", log)))
        scored = subprocess.run([args.programs / "nmt-score", "-m", model, args.valid,
                                 "--parts", "16", "--output", "/dev/null"],
                                capture_output=True, text=True, check=True)
        self.perplexity, self.low, self.high = map(
            float, re.search(r"perplexity ([\d.]+) per word, 95 % interval ([\d.]+) to ([\d.]+)",
                             scored.stderr).groups())


def main():
    args, options = trainings.parse(
        trainings.parser(__doc__, ["lstm", "gru", "atr", "lrn", "olrn", "glrn", "elrn"]))
    keys = [(unit, seed) for unit in args.units for seed in args.seeds]
    futures = trainings.run(args, lambda key: Run(args, *key, options), keys)
    print("| unit | weights | perplexity | words/s of training |\n|---|---|---|---|", flush=True)
    for unit in args.units:
        done = trainings.results(futures, [(unit, seed) for seed in args.seeds])
        perplexity = math.exp(statistics.mean(math.log(run.perplexity) for run in done))
        spread = (f"± {statistics.stdev(run.perplexity for run in done):.1f}" if len(done) > 1
                  else f"({done[0].low:.1f} to {done[0].high:.1f})")
        print(f"| {unit} | {done[0].weights:,} | {perplexity:.1f} {spread} | "
              f"{statistics.median(run.speed for run in done):,.0f} |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
