#!/usr/bin/env python3
"""Products of weights in int8 beside oneDNN's, through PyTorch: one thread, CPU time, GFLOP/s.

Both sides take activations in float32, quantize them, multiply by packed weights in int8 and return
float32: ours per row (nmt-bench, rows "products packed before"), PyTorch's
quantized::linear_dynamic with the engine onednn per matrix. Two more columns are ours: int8 without
AMX (NMT_AMX=0), and float32.

    scripts/bench/rivals/compare_int8_products.py [--rows 1 4 32 64 512]

nmt-bench is taken from $NMT_BUILD, else build/. It needs PyTorch, whose calls take at least 25
microseconds each."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import processor_table  # noqa: E402
from common import arguments  # noqa: E402
from common.system import programs  # noqa: E402

# N, K
SHAPES = [(256, 256), (768, 256), (256, 512), (768, 512), (1024, 256), (8000, 256), (1024, 1024),
          (3072, 1024)]


def ours(names, precision, seconds, **environment):
    """GFLOP/s of nmt-bench by the name of the row."""
    command = [programs() / "nmt-bench", "--precision", precision, "--products", "own",
               "--cpu-threads", "1", "--format", "json", "--min-time", str(seconds),
               "--filter", f"^products packed before/({'|'.join(names)})$"]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, **environment})
    return {row["name"]: 1e-6 * row["flops"] / row["real_time"]
            for row in json.loads(done.stdout)["benchmarks"]}


def theirs(m, n, k, seconds):
    """GFLOP/s of PyTorch's product of float32 activations and int8 weights: the shortest of
    its samples."""
    import torch

    weight = torch.quantize_per_channel(torch.randn(n, k), torch.full((n,), 0.03),
                                        torch.zeros(n, dtype=torch.long), 0, torch.qint8)
    packed, x = torch.ops.quantized.linear_prepack(weight, None), torch.randn(m, k)
    best, runs, end = float("inf"), 1, time.process_time() + seconds
    while time.process_time() < end:
        start = time.process_time()
        for _ in range(runs):
            torch.ops.quantized.linear_dynamic(x, packed, reduce_range=False)
        best = min(best, (time.process_time() - start) / runs)
        runs = max(1, int(2e-3 / best))
    return 2e-9 * m * n * k / best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=arguments.whole(), nargs="+", default=[1, 4, 32, 64, 512],
                        metavar="M",
                        help="rows of activations; nmt-bench must have them (%(default)s)")
    parser.add_argument("--seconds", type=arguments.number(above=0), default=0.1,
                        help="CPU time per product and side (%(default)s)")
    options = parser.parse_args()
    arguments.need_programs(programs(), "nmt-bench")
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed: pip install torch")
    torch.set_num_threads(1)
    torch.backends.quantized.engine = "onednn"
    warnings.filterwarnings("ignore", category=UserWarning)
    names = {f"A B M {m} N {n} K {k}": (m, n, k) for n, k in SHAPES for m in options.rows}
    float32 = ours(names, "float32", options.seconds)
    if missing := names.keys() - float32:
        sys.exit(f"nmt-bench has no row {sorted(missing)[0]!r}")
    int8, vnni = (ours(names, "int8", options.seconds, **e) for e in ({}, {"NMT_AMX": "0"}))
    print(f"PyTorch {torch.__version__}, {processor_table.name_and_class()}, one thread, CPU time, "
          "GFLOP/s\n")
    print("| M | N | K | float32 | int8 without AMX | int8 | PyTorch, int8 | ratio |\n"
          "|---|---|---|---|---|---|---|---|")
    for name, shape in names.items():
        rival = theirs(*shape, options.seconds)
        print(f"| {' | '.join(map(str, shape))} | {float32[name]:.0f} | {vnni[name]:.0f} | "
              f"{int8[name]:,.0f} | {rival:,.0f} | {int8[name] / rival:.1f} |")


if __name__ == "__main__":
    arguments.call(main)
