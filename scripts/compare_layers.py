#!/usr/bin/env python3
"""Forward + backward of one recurrent layer (T 32, B 64, width 512) here and in PyTorch, in turn: `nmt-bench layers` beside
torch.nn.GRU and torch.nn.LSTM. Prints a table with ratios. Our program is taken from $NMT_BUILD, else build/ beside this folder.
PyTorch comes from the environment, or into .venv as scripts/compare_pytorch.py does."""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from compare_pytorch import ensure_packages, programs  # noqa: E402


def torch_layer(kind, steps=32, batch=64, width=512):
    import torch

    layer = getattr(torch.nn, kind)(width, width)
    x = torch.randn(steps, batch, width, requires_grad=True)
    dy = torch.randn(steps, batch, width)
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        layer(x)[0].backward(dy)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main():
    ensure_packages()
    import torch

    threads = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
    torch.set_num_threads(threads)
    rivals = {kind: torch_layer(kind) for kind in ("GRU", "LSTM")}
    out = subprocess.run([str(programs() / "nmt-bench"), "layers", str(threads)], check=True, capture_output=True, text=True).stdout
    rivals = {kind: min(ms, torch_layer(kind)) for kind, ms in rivals.items()}
    print(f"PyTorch {torch.__version__}, {threads} threads: torch.nn.GRU {rivals['GRU']:.1f} ms, torch.nn.LSTM {rivals['LSTM']:.1f} ms\n")
    print("| unit | ms forward + backward | torch.nn.GRU over it | torch.nn.LSTM over it |\n|---|---|---|---|")
    for name, ms in re.findall(r"^\| (.+?) \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|", out, re.M):
        print(f"| {name} | {ms} | {rivals['GRU'] / float(ms):.2f} | {rivals['LSTM'] / float(ms):.2f} |")


if __name__ == "__main__":
    main()
