#!/usr/bin/env python3
"""Compares forward + backward of one recurrent layer (T 32, B 64, width 512) here and in
PyTorch, in alternation over several rounds: the rows `layers` of nmt-bench, and a row of
`groups`, against torch.nn.GRU and torch.nn.LSTM, and against LRN written as a PyTorch user
would, as a loop over time, plain and compiled. Prints tables with ratios of the shortest
times; --out writes the times as JSON.

Before any timing, torch.nn.GRU, torch.nn.LSTM and the loop are checked against their equations in
numpy, in double; nmt-bench does the same for every unit. With --device cuda, GRU and LSTM run in
float32, float16 and bfloat16, and the kernels chosen by cuDNN are printed, because cuDNN has
persistent kernels only for some shapes and types. `--precision bfloat16`: nmt-bench with this
option, and the loop under autocast. With one thread CPU time is measured, with more wall time.
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

STEPS, BATCH, WIDTH = 32, 64, 512
QUICK = 5, 9, 16  # the sizes of nmt-bench --quick


def sigmoid(x):
    import numpy as np

    return 1 / (1 + np.exp(-x))


def equations(kind, layer, x):
    """h after every step in double, by the formulas in PyTorch's documentation of nn.GRU
    and nn.LSTM."""
    import numpy as np

    wi, wh, bi, bh = (getattr(layer, name).detach().double().numpy()
                      for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
    h = c = np.zeros((x.shape[1], wh.shape[1]))
    out = []
    for step in x:
        a, b = step @ wi.T + bi, h @ wh.T + bh
        if kind == "GRU":
            (ar, az, an), (br, bz, bn) = np.split(a, 3, 1), np.split(b, 3, 1)
            z = sigmoid(az + bz)
            h = (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * h
        else:
            i, f, g, o = np.split(a + b, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)


def lrn_equations(w, x):
    import numpy as np

    h, out = np.zeros(x.shape[1:]), []
    for step in x @ w.T:
        q, k, v = np.split(step, 3, 1)
        h = np.tanh(sigmoid(k + h) * v + sigmoid(q - h) * h)
        out.append(h)
    return np.stack(out)


def lrn_loop():
    """LRN (Zhang & Sennrich, ACL 2019, eq. 1-4) in PyTorch: one matmul for all steps, then
    a loop."""
    import torch

    class Lrn(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.projection = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)

        def forward(self, x):
            h, states = torch.zeros_like(x[0]), []
            for q, k, v in (step.chunk(3, dim=-1) for step in self.projection(x)):
                h = torch.tanh(torch.sigmoid(k + h) * v + torch.sigmoid(q - h) * h)
                states.append(h)
            return torch.stack(states)

    return Lrn()


class Rival:
    def __init__(self, name, layer, args, dtype=None, autocast=False):
        import torch

        self.autocast = torch.autocast(args.device, torch.bfloat16, enabled=autocast)
        self.name, self.layer, self.clock, self.best, self.kernels = (name,
                                                                      layer.to(args.device, dtype),
                                                                      Clock(args), float("inf"), "")
        self.x = torch.randn(STEPS, BATCH, WIDTH, device=args.device, dtype=dtype,
                             requires_grad=True)
        self.dy = torch.randn(STEPS, BATCH, WIDTH, device=args.device, dtype=dtype)

    def run(self):
        with self.autocast:
            out = self.layer(self.x)
        (out[0] if isinstance(out, tuple) else out).backward(self.dy)

    def round(self, runs):
        for _ in range(runs):
            start = self.clock()
            self.run()
            self.best = min(self.best, self.clock() - start)

    def name_kernels(self):
        """The longest-running GPU kernels; their names show whether cuDNN chose a
        persistent one."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            self.run()
        events = sorted(seen.key_averages(), key=lambda e: -e.self_device_time_total)
        self.kernels = ", ".join(event.key.split("(")[0][:60] for event in events[:2])


def check(name, value, expected, tolerance=2e-5):
    difference = abs(value - expected).max()
    print(f"{name}: at most {difference:.1e} from its equations in double")
    if not difference <= tolerance:
        sys.exit(f"{name} does not compute its equations: no ratio")


def make_rivals(args):
    import numpy as np
    import torch

    x = torch.from_numpy(
        np.random.default_rng(1).standard_normal((STEPS, 3, WIDTH)).astype(np.float32))
    rivals = []
    for kind in ("GRU", "LSTM"):
        if not re.search(args.torch, f"torch.nn.{kind}"):
            continue
        layer = getattr(torch.nn, kind)(WIDTH, WIDTH)
        check(f"torch.nn.{kind}", layer(x)[0].detach().double().numpy(),
              equations(kind, layer, x.double().numpy()))
        types = [("float32", None)] + ([("float16", torch.float16), ("bfloat16", torch.bfloat16)]
                                       if args.device == "cuda" else [])
        rivals += [Rival(f"torch.nn.{kind} {name}", getattr(torch.nn, kind)(WIDTH, WIDTH), args,
                         dtype) for name, dtype in types]
    if not re.search(args.torch, "LRN loop"):
        return rivals
    loop, autocast = lrn_loop(), args.precision == "bfloat16"
    check("the LRN loop", loop(x).detach().double().numpy(),
          lrn_equations(loop.projection.weight.detach().double().numpy(), x.double().numpy()))
    rivals.append(Rival("LRN loop, eager", lrn_loop(), args, autocast=autocast))
    if args.no_compile:
        return rivals
    try:
        compiled = Rival("LRN loop, compiled", torch.compile(lrn_loop()), args, autocast=autocast)
        compiled.run()
        rivals.append(compiled)
    except Exception as error:  # for example on a machine without a compiler
        print(f"torch.compile does not work here: {str(error).splitlines()[0][:120]}")
    return rivals


def ours(args):
    """unit -> ms of forward+backward, and row -> error; a row of nmt-bench compares itself with its
    equations first."""
    rows = f"^(layers/({args.units}).*forward\\+backward|groups/({args.grouped})$)"
    command = [programs() / "nmt-bench", "--filter", rows, "--format", "json",
               "--cpu-threads", args.threads, "--device", args.device,
               "--precision", args.precision,
               *(["--quick"] if args.quick else ["--min-time", args.min_time])]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    try:
        rows = json.loads(done.stdout)["benchmarks"]
    except ValueError:
        sys.exit(f"nmt-bench: status {done.returncode}: {done.stderr.strip()[-500:]}")
    for row in rows:
        row["unit"] = row["name"].split(" forward+backward")[0]
    return ({row["unit"]: row["real_time"] for row in rows if "real_time" in row},
            {row["unit"]: row["error_message"] for row in rows if "error_message" in row})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_device_options(parser)
    parser.add_argument("--rounds", type=arguments.whole(), default=3)
    parser.add_argument("--min-time", type=arguments.number(above=0), default=0.5,
                        help="minimum seconds per row of nmt-bench and round (%(default)s)")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32",
                        help="precision of nmt-bench and of the loop (%(default)s)")
    parser.add_argument("--units", type=arguments.pattern, default="lrn|olrn|sru|atr|gru|lstm",
                        help="regular expression of unit names (%(default)s)")
    parser.add_argument("--grouped", type=arguments.pattern, default="gru reset=after groups 4",
                        help="regular expression of rows of the table groups (%(default)s)")
    parser.add_argument("--torch", type=arguments.pattern, default="",
                        help="regular expression of PyTorch's layers: torch.nn.GRU, torch.nn.LSTM, "
                             "LRN loop (default: all)")
    parser.add_argument("--no-compile", action="store_true",
                        help="skip the compiled loop, which takes minutes to compile")
    parser.add_argument("--quick", action="store_true",
                        help="smoke test: small sizes on both sides")
    parser.add_argument("--out", type=arguments.new_file, help="write the times as JSON")
    args = parser.parse_args()
    if args.precision == "bfloat16" and args.device == "cpu" and not args.quick:
        parser.error("--precision bfloat16 needs --device cuda: on the CPU the rows of nmt-bench "
                     "are float32")
    arguments.need_programs(programs(), "nmt-bench")
    global STEPS, BATCH, WIDTH
    if args.quick:
        STEPS, BATCH, WIDTH = QUICK
    ensure_packages("torch", "numpy")
    print(describe_device(args))
    rivals = make_rivals(args)
    times, failed = {}, {}
    for _ in range(args.rounds):
        for rival in rivals:
            rival.round(4)
        measured, errors = ours(args)
        failed.update(errors)
        for name, ms in measured.items():
            times[name] = min(ms, times.get(name, float("inf")))
    if args.device == "cuda":
        for rival in rivals:
            rival.name_kernels()
    print("\n| PyTorch | ms | kernels |\n|---|---|---|")
    for rival in rivals:
        print(f"| {rival.name} | {1e3 * rival.best:.2f} | {rival.kernels} |")
    print("\n| ours | ms | " + " | ".join(f"{rival.name} over it" for rival in rivals)
          + " |\n|---|---|" + "---|" * len(rivals))
    for name, ms in times.items():
        print(f"| {name} | {ms:.2f} | "
              + " | ".join(f"{1e3 * rival.best / ms:.2f}" for rival in rivals) + " |")
    for kind in ("GRU", "LSTM"):
        fastest = min((rival for rival in rivals if rival.name.startswith(f"torch.nn.{kind} ")),
                      key=lambda rival: rival.best, default=None)
        if fastest:
            print(f"fastest torch.nn.{kind}: {re.sub('.* ', '', fastest.name)}, "
                  f"{1e3 * fastest.best:.2f} ms")
    if args.out:
        args.out.write_text(json.dumps({"precision": args.precision, "ours": times, "torch": {
            rival.name: 1e3 * rival.best for rival in rivals}}) + "\n", encoding="utf-8")
    if failed or not times:
        sys.exit("\n".join(f"{name}: {error}" for name, error in failed.items())
                 or "nmt-bench has no such row")


if __name__ == "__main__":
    arguments.call(main)
