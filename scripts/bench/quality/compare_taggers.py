#!/usr/bin/env python3
"""Trains taggers of all networks and units and prints a Markdown table of their accuracy (tables 3
and 4 of the ELSTM paper).

    compare_taggers.py train.conllu valid.conllu --units lstm gru elstm2 lrn olrn --seeds 1 2 3 \\
        --work DIR [-- OPTION...]

Options after -- go to nmt-train; --jobs trainings run side by side. A training in DIR that is
complete is not repeated."""
import re
import statistics
import subprocess

import trainings
from common import arguments


def main():
    parser = trainings.parser(__doc__, ["lstm", "gru", "elstm2", "lrn", "olrn"])
    parser.add_argument("--networks", nargs="+", default=["basic", "bidirectional", "dependent"])
    args, options = trainings.parse(parser)

    def accuracy(key):
        network, unit, seed = key
        model, _ = trainings.train(args, f"{network}-{unit}-{seed}",
                                   ["--task", "tagging", "--tagging-network", network,
                                    "--unit", unit, "--seed", str(seed), *options])
        found = subprocess.run([args.programs / "nmt-tag", model, "--evaluate", args.valid],
                               capture_output=True, text=True, check=True)
        return float(re.match(r".+? ([\d.]+) ", found.stdout)[1])

    keys = [(network, unit, seed) for network in args.networks for unit in args.units
            for seed in args.seeds]
    futures = trainings.run(args, accuracy, keys)
    print("| network | " + " | ".join(args.units) + " |\n|---|"
          + "---|" * len(args.units), flush=True)
    for network in args.networks:
        cells = []
        for unit in args.units:
            values = trainings.results(futures, [(network, unit, seed) for seed in args.seeds])
            spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.2f}{spread}")
        print(f"| {network} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
