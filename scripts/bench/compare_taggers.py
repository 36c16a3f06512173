#!/usr/bin/env python3
"""Trains taggers of all networks and units and prints a Markdown table of their accuracy (tables 3 and 4 of the ELSTM
paper).

    compare_taggers.py train.conllu valid.conllu --units lstm gru elstm2 lrn olrn --seeds 1 2 3 --work DIR [-- OPTION...]

Options after -- go to nmt-train; --jobs trainings run side by side. A training in DIR that is complete is not
repeated."""
import argparse
import concurrent.futures
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def score(programs, train, valid, network, unit, seed, work, options):
    """The metric's name and value of one training."""
    model = work / f"{network}-{unit}-{seed}"
    log = model.with_suffix(".log")
    if not log.exists() or "training is over" not in log.read_text():
        command = [programs / "nmt-train", "--task", "tagging", train, "--valid-sets", valid, "--model", model,
                   "--tagging-network", network, "--unit", unit, "--seed", str(seed), *options]
        with log.open("w") as file:
            subprocess.run(command, stderr=file, stdout=file, check=True)
    found = subprocess.run([programs / "nmt-tag", model, "--evaluate", valid], capture_output=True, text=True, check=True)
    name, value = re.match(r"(.+?) ([\d.]+) ", found.stdout).groups()
    return name, float(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("--networks", nargs="+", default=["basic", "bidirectional", "dependent"])
    parser.add_argument("--units", nargs="+", default=["lstm", "gru", "elstm2", "lrn", "olrn"])
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
    print("| network | " + " | ".join(args.units) + " |\n|---|" + "---|" * len(args.units), flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {(network, unit): [pool.submit(score, args.programs, args.train, args.valid, network, unit, seed, args.work, options)
                                  for seed in args.seeds]
                for network in args.networks for unit in args.units}
        for network in args.networks:
            cells = []
            for unit in args.units:
                values = [run.result()[1] for run in runs[network, unit]]
                spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
                cells.append(f"{statistics.mean(values):.2f}{spread}")
            print(f"| {network} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
