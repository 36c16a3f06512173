#!/usr/bin/env python3
"""Measures how the time of a training pass (loss and gradients) grows with sentence length, width,
depth, vocabulary and batch size, here and in PyTorch, in alternation: the rows of `nmt-bench
growth` and pytorch_model.py at the same sizes (deep, GRU with `reset: after` and biases,
`attention-query: first-layer`, dropout 0.2, label smoothing 0.1, sentences of full length). Prints
microseconds per target token on both sides and the ratio. scripts/bench/pytorch/compare_pytorch.py
shows that both compute the same loss; this script only compares the numbers of weights.

With one thread CPU time is measured, with more wall time; the minimum over the rounds is used.
nmt-bench is taken from $NMT_BUILD, else build/. PyTorch is taken from the environment, else
installed into .venv as by scripts/bench/pytorch/compare_pytorch.py."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.pytorch import add_device_options, describe_device  # noqa: E402
from common.system import Clock, ensure_packages, programs  # noqa: E402


def bench(args, filter, *more):
    command = [programs() / "nmt-bench", "--filter", filter, "--cpu-threads", args.threads,
               "--device", args.device, *more]
    return subprocess.run([str(c) for c in command], check=True, capture_output=True,
                          text=True).stdout


class TorchPass:
    def __init__(self, args, sentences, steps, width, layers, vocabulary):
        import torch
        from pytorch_model import Deep

        self.clock, self.tokens = Clock(args), sentences * steps
        model = Deep(vocabulary, width, width, "first-layer", 0.2, layers).to(args.device).train()
        self.weights = sum(p.numel() for p in model.parameters())
        self.model = torch.compile(model, dynamic=False) if args.compile else model
        ids = torch.randint(3, vocabulary, (steps, sentences), device=args.device)
        ids[-1] = 2
        shifted = torch.cat([torch.ones_like(ids[:1]), ids[:-1]])
        self.batch = (ids, torch.full((sentences,), steps, device=args.device), shifted, ids)

    def seconds(self):
        start = self.clock()
        self.model.zero_grad(set_to_none=True)
        self.model(*self.batch, 0.1)[0].backward()
        return self.clock() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device_options(parser)
    parser.add_argument("--filter", type=arguments.pattern, default="",
                        help="substring of the row names, for example `length`")
    parser.add_argument("--rounds", type=arguments.whole(), default=3)
    parser.add_argument("--min-time", type=arguments.number(above=0), default=0.3,
                        help="minimum seconds per row of nmt-bench and round (%(default)s)")
    parser.add_argument("--compile", action="store_true", help="torch.compile the PyTorch model")
    args = parser.parse_args()
    arguments.need_programs(programs(), "nmt-bench")
    # The sizes are those of the benchmark's rows; nmt-bench and PyTorch alternate for each size.
    rows = [line.split("/", 1)[1]
            for line in bench(args, f"^growth/({args.filter})", "--list").splitlines()]
    ensure_packages("torch", "numpy")
    print(describe_device(args) + (", compiled" if args.compile else ""))
    print("\n| growing | sizes | ours, us a target token | PyTorch | ratio | ours over its first "
          "row | PyTorch's |\n|---|---|---|---|---|---|---|")
    first = {}
    for name in rows:
        what, sizes = name.split(": ")
        numbers = map(int,
                      re.fullmatch(r"B (\d+) T (\d+) H (\d+) layers (\d+) V (\d+)", sizes).groups())
        rival = TorchPass(args, *numbers)
        ours, theirs = [], []
        rival.seconds()
        for _ in range(args.rounds):
            row = json.loads(bench(args, f"^growth/{name}$", "--min-time", args.min_time,
                                   "--format", "json"))["benchmarks"][0]
            ours.append(row["extras"]["us a target token"])
            theirs += [1e6 * rival.seconds() / rival.tokens for _ in range(3)]
            if row["extras"]["weights"] != rival.weights:
                sys.exit(f"{name}: {row['extras']['weights']} weights here and {rival.weights} in "
                         "PyTorch: no ratio")
        mine, other = min(ours), min(theirs)
        begin = first.setdefault(what, (mine, other))
        print(f"| {what} | {sizes} | {mine:.1f} | {other:.1f} | {other / mine:.2f} | "
              f"{mine / begin[0]:.2f} | {other / begin[1]:.2f} |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
