"""Part 3: comparisons with PyTorch, and Nsight Compute's times of all kernels of a step and its
counters of six kernels."""
import csv
import importlib.util
import io
import json
import pathlib
import re
import sys

import tools
import training

BENCH = pathlib.Path(__file__).resolve().parents[1]
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes.sum": "memory traffic",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory bandwidth, %",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessors, %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy, %",
    "launch__registers_per_thread": "registers",
    "smsp__inst_executed.sum": "instructions",
    "lts__t_sectors_op_read.sum": "L2 reads",
}
# Name: (row of nmt-bench, pattern of the kernel's name, options).
KERNELS = {
    "lrn forward": ("^recurrences/lrn activation=tanh forward", "forward_kernel", ()),
    "olrn backward": ("^recurrences/olrn backward", "backward_kernel", ()),
    "layer normalization, backward": ("^pointwise/layer_norm_backward",
                                      "layer_norm_backward|backward", ()),
    "softmax and loss": ("^softmax/loss and gradients R 1024 E 1024 V 32000", "loss|softmax", ()),
    "rounding to bfloat16": ("^products/A B M 4096 N 1024 K 1024", "each|gather",
                             ("--precision", "bfloat16")),
    "top-k of a decoding step": ("^decoding/wmt14-en-de-lrn olrn float32 batch 1 beam 4",
                                 "best_of_parts", ()),
}

# All launches of one run without graphs: name: (row, precision).
WHOLE = {
    "a training step of deep oLRN, bfloat16": ("^step/wmt14-en-de-lrn olrn B 128 T 32: whole step$",
                                               "bfloat16"),
}
WHOLE_METRICS = {"gpu__time_duration.sum": "ns", "dram__bytes_read.sum": "read",
                 "dram__bytes_write.sum": "written"}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "nsecond": 1, "usecond": 1e3, "msecond": 1e6,
         "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def compare(check, name, script, arguments, limit, packages, writes=False):
    """A step: one of the comparison scripts; its output is the result. `writes`: it has --out, for
    times in JSON."""
    state = check.state
    if state.is_done(name):
        return
    lacking = [package for package in packages if importlib.util.find_spec(package) is None]
    if lacking:
        return state.finish(name, f"not run: this Python has no {', '.join(lacking)}", True, 0)
    times = check.runner.work / "times.json"
    times.unlink(missing_ok=True)
    done = check.runner.run(
        [sys.executable, BENCH / script, *arguments, *(["--out", times] if writes else [])], limit,
        env={"NMT_BUILD": str(check.build), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"})
    good = done.status == 0
    values = {"times": json.loads(times.read_text(encoding="utf-8"))} if times.exists() else {}
    state.finish(name, "done" if good else f"FAILED (status {done.status})", good, done.seconds,
                 "" if good else done.text, text=done.text[-12000:], **values)


def counters(text):
    """kernel, metric -> value of ncu's CSV output; the longest launch of each kernel."""
    begin = text.find('"ID"')
    if begin < 0:
        return {}
    launches = {}
    for row in csv.DictReader(io.StringIO(text[begin:])):
        launch = launches.setdefault(row.get("ID"), {"kernel": row.get("Kernel Name", "")})
        metric = METRICS.get(row.get("Metric Name"))
        if metric:
            launch[metric] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return launches


def profile(check, kernel):
    state = check.state
    name = f"ncu: {kernel}"
    if state.is_done(name):
        return
    common = ["--csv", "--target-processes", "all", "--clock-control", "none",
              "--metrics", ",".join(METRICS)]
    why = tools.why_not(check, "ncu", [*common, "--launch-count", "1"],
                        lambda done: done.status == 0 and bool(counters(done.text)))
    if why:
        return state.finish(name, f"not run: {why}", True, 0)
    row, pattern, options = KERNELS[kernel]
    if check.options.emulated:
        row = "^pointwise/fill"
    command = [check.tool("ncu"), *common, "--kernel-name", f"regex:{pattern}",
               "--launch-skip", "4", "--launch-count", "2", check.program("nmt-bench"),
               "--device", "cuda", "--min-time", "0", "--filter", row, *options]
    done = check.runner.run(command, 150)
    launches = counters(done.text)
    good = done.status == 0 and bool(launches)
    state.finish(name, f"{len(launches)} launches" if good
                       else f"FAILED (status {done.status}, {len(launches)} launches)", good,
                 done.seconds, "" if good else done.text, launches=list(launches.values()))


def sums(text):
    """kernel -> launches and sums of WHOLE_METRICS of ncu's CSV output, the longest kernels
    first."""
    begin, kernels, ids = text.find('"ID"'), {}, {}
    for row in csv.DictReader(io.StringIO(text[begin:])) if begin >= 0 else ():
        metric = WHOLE_METRICS.get(row.get("Metric Name"))
        if not metric:
            continue
        name = re.sub(r"^void |\(.*$", "",
                      row["Kernel Name"]).replace("nmt::kernels::", "").replace("unnamed>::", "")
        kernel = kernels.setdefault(name[:100],
                                    {"launches": 0, **dict.fromkeys(WHOLE_METRICS.values(), 0)})
        kernel[metric] += float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
        ids.setdefault(name[:100], set()).add(row["ID"])
        kernel["launches"] = len(ids[name[:100]])
    return dict(sorted(kernels.items(), key=lambda item: -item[1]["ns"]))


def profile_whole(check, what):
    """A step: time and memory traffic of every kernel of one run of a row."""
    state, name = check.state, f"ncu: {what}"
    if state.is_done(name):
        return
    row, precision = WHOLE[what]
    common = ["--csv", "--target-processes", "all", "--clock-control", "none",
              "--cache-control", "none", "--metrics", ",".join(WHOLE_METRICS)]
    why = tools.why_not(check, "ncu", [*common, "--launch-count", "1"],
                        lambda done: done.status == 0 and '"ID"' in done.text)
    if why:
        return state.finish(name, f"not run: {why}", True, 0)
    if check.options.emulated:
        row, precision = "^step/tiny lrn", "float32"
    command = [check.tool("ncu"), *common, "--profile-from-start", "off",
               check.program("nmt-bench"), "--device", "cuda", "--min-time", "0",
               "--precision", precision, "--filter", row,
               *(["--quick"] if check.options.emulated else [])]
    done = check.runner.run(command, 150)
    kernels = sums(done.text)
    good = done.status == 0 and bool(kernels)
    result = (f"{sum(kernel['launches'] for kernel in kernels.values())} launches, "
              f"{1e-6 * sum(kernel['ns'] for kernel in kernels.values()):.3f} ms")
    state.finish(name, result if good else f"FAILED (status {done.status})", good, done.seconds,
                 "" if good else done.text, kernels=kernels)


# On the machine of the emulator the comparisons are a smoke test on the CPU. The loss that
# compare_pytorch.py checks is that of 100 pairs.
EMULATED_PAIRS = {"pairs": 110, "valid": 1, "test": 1}


def layers(check, name, precision, more):
    device = (["--device", "cpu", "--quick", "--rounds", "1"] if check.options.emulated
              else ["--device", "cuda", "--rounds", "2", "--min-time", "0.2"])
    compare(check, f"{name}, {precision}", "pytorch/compare_layers.py",
            [*device, "--precision", precision, *more], 240, ("torch", "numpy"), True)


def trainings(check):
    device, data = (["--device", "cuda", "--rounds", "2", "--updates", "200"],
                    check.options.data or check.build / "data/multi30k")
    if check.options.emulated:
        device, data = (["--device", "cpu", "--threads", "1", "--rounds", "1", "--updates", "1"],
                        check.runner.work / "toy")
        training.make_toy(data, EMULATED_PAIRS, True)
    if not data.is_dir():
        return check.state.finish("training and PyTorch", "not run: there is no Multi30k", True, 0)
    for precision in ("float32", "bfloat16"):
        compare(check, f"training and PyTorch, {precision}", "pytorch/compare_pytorch.py",
                [*device, "--data", data.resolve(), "--precision", precision], 240,
                ("torch", "numpy", "sentencepiece"))


def part(check):
    for what in WHOLE:
        profile_whole(check, what)
    layers(check, "layers and torch.nn", "bfloat16", ["--no-compile"])
    layers(check, "layers and torch.nn", "float32", ["--no-compile"])
    trainings(check)
    if check.options.emulated:
        check.state.finish("LRN and a compiled loop, bfloat16",
                           "not run: compiling takes a minute", True, 0)
    else:
        layers(check, "LRN and a compiled loop", "bfloat16",
               ["--torch", "LRN loop", "--units", "lrn activation=tanh", "--grouped", "none"])
    for kernel in KERNELS:
        profile(check, kernel)
