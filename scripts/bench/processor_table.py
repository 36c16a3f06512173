#!/usr/bin/env python3
"""Measures this processor with nmt-bench and writes the section of its class in
docs/benchmarks/processors.md: peaks of its instruction sets, bandwidth of its caches, and the
training passes and decoding steps of the models of configs/multi30k.yaml. The sections of other
classes stay as they are.

nmt-bench is taken from $NMT_BUILD, else build/."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

from common import arguments, system

PROGRAM = system.programs() / "nmt-bench"
PAGE = system.ROOT / "docs/benchmarks/processors.md"
# Rows in each precision of the weights and by these products; those of "tiny" are the smoke test's.
TRAINING = r"training/(multi30k (gru|lrn|olrn|sru)|tiny)"
RUNS = [("float32", "own", rf"^(processor/|{TRAINING}|decoding/(multi30k|tiny))"),
        ("float32", "bfloat16x3", f"^{TRAINING}"),
        ("int8", "own", r"^decoding/(multi30k|tiny)")]
# Families and models by CPUID: "AMD Processor Programming Reference" and "Intel 64 and IA-32
# Architectures Software Developer's Manual", volume 4, table 2-1.
INTEL = {85: "Skylake", 106: "Ice Lake", 108: "Ice Lake", 143: "Sapphire Rapids",
         207: "Emerald Rapids", 173: "Granite Rapids", 174: "Granite Rapids"}


# Features that change the rows, and the microarchitectures that have them.
SAPPHIRE_AND_LATER = ("Intel Sapphire Rapids", "Intel Emerald Rapids", "Intel Granite Rapids")
FEATURES = [("AMX", "amx_tile", SAPPHIRE_AND_LATER),
            ("AVX-512 BF16", "avx512_bf16", ("AMD Zen 4", "AMD Zen 5", *SAPPHIRE_AND_LATER)),
            ("AVX-512 VNNI", "avx512_vnni",
             ("AMD Zen 4", "AMD Zen 5", "Intel Ice Lake", *SAPPHIRE_AND_LATER))]


def class_of(vendor, family, model, flags=(), l3_kib=0):
    """The microarchitecture as this page names it, with the features that a hypervisor hides, or
    vendor and numbers."""
    name = microarchitecture(vendor, family, model, flags, l3_kib)
    hidden = [feature for feature, flag, names in FEATURES if name in names and flag not in flags]
    return name + (" without " + " and ".join(hidden) if hidden else "")


def microarchitecture(vendor, family, model, flags, l3_kib):
    """A hypervisor may report the model of another processor: one with AMX and a third-level cache
    of more than the 320 MiB of Emerald Rapids is Granite Rapids."""
    if vendor == "GenuineIntel" and "amx_tile" in flags and l3_kib > 320 * 1024:
        return "Intel Granite Rapids"
    if vendor == "AuthenticAMD" and family == 26:
        return "AMD Zen 5"
    if vendor == "AuthenticAMD" and family == 25:
        return "AMD Zen 4" if "avx512f" in flags else "AMD Zen 3"
    if vendor == "AuthenticAMD" and family == 23:
        return "AMD Zen 2" if model >= 0x30 else "AMD Zen"
    if vendor == "GenuineIntel" and family == 6 and model in INTEL:
        if model == 85 and "avx512_bf16" in flags:
            return "Intel Cooper Lake"
        if model == 85 and "avx512_vnni" in flags:
            return "Intel Cascade Lake"
        return "Intel " + INTEL[model]
    return f"{vendor} family {family} model {model}"


def l3_kib():
    """Size of the third-level cache, or 0 where Linux does not say."""
    size = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return int(size.read_text(encoding="utf-8").strip().rstrip("K")) if size.exists() else 0


def this_class():
    facts = system.processor_facts()
    return class_of(facts.get("vendor_id", "unknown"), int(facts.get("cpu family", 0)),
                    int(facts.get("model", 0)), facts.get("flags", "").split(), l3_kib())


def name_and_class():
    """The processor's name and its class, as in docs/benchmarks/processors.md."""
    return f"{system.processor_name()} ({this_class()})"


def measure(threads, more):
    """The report of nmt-bench, with the rows of all runs."""
    documents = []
    for precision, products, rows in RUNS:
        if (products == "bfloat16x3"
            and "amx_bf16" not in system.processor_facts().get("flags", "").split()):
            continue
        command = [PROGRAM, "--filter", rows, "--precision", precision, "--format", "json",
                   "--products", products, "--cpu-threads", threads, *more]
        done = subprocess.run([str(word) for word in command], check=True,
                              stdout=subprocess.PIPE, text=True)
        documents.append(json.loads(done.stdout))
        if products != "own":
            for row in documents[-1]["benchmarks"]:
                row["table"] += f", {products}"
    for document in documents[1:]:
        documents[0]["benchmarks"] += document["benchmarks"]
    return documents[0]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cells(row):
    """Speed and share of one row."""
    seconds = 1e-3 * row["real_time"]
    if row["table"] == "processor":
        if row["bytes"]:
            return number(1e-9 * row["bytes"] / seconds) + " GB/s", ""
        peak = row["flops"] / seconds
        more = row.get("extras", {})
        if row["name"] == "integers":
            return f"{more['at GHz']:.2f} GHz", ""
        shares = f"{peak / row['peak_flops_per_second']:.2f}"
        if "at GHz" in more:
            shares += (f"; {1e9 * more['sustained, GFLOP/s'] / row['peak_flops_per_second']:.2f} "
                       f"at {more['at GHz']:.2f} GHz")
        return number(1e-9 * peak) + " G/s", shares
    return (number(row["real_time"]) + " ms",
            f"{100 * row['share']:.0f} % of "
            f"{'bandwidth' if row['bound'] != 'arithmetic' else 'peak'}")


def section(name, documents):
    context = next(iter(documents.values()))["context"]
    threads = list(documents)
    machine = (f"{context['processor']}, {context['processors']} processors, {context['caches']}; "
               f"{context['date'][:10]}. Load: {context['load']}. "
               "One thread: CPU time; more threads: wall time.")
    lines = [f"## {name}", "", *textwrap.wrap(machine, 100), "",
             "| row | " + " | ".join(f"{n} thread{'s' if n > 1 else ''} | share" for n in threads)
             + " |", "|---|" + "---|---|" * len(threads)]
    for rows in zip(*(document["benchmarks"] for document in documents.values())):
        shown = [cell for row in rows for cell in cells(row)]
        lines.append(f"| {rows[0]['table']}: {rows[0]['name']} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def replaced(page, name, text):
    """The page with this section in place of the one of the same name, or at its end."""
    parts = re.split(r"^(?=## )", page, flags=re.M)
    at = [i for i, part in enumerate(parts) if part.startswith(f"## {name}\n")]
    if at:
        parts[at[0]] = text + ("\n" if at[0] + 1 < len(parts) else "")
        return "".join(parts)
    return page.rstrip("\n") + "\n\n" + text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=arguments.file, default=PAGE,
                        help="page to write the section to (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="smoke test: small shapes")
    options = parser.parse_args()
    arguments.need_programs(PROGRAM.parent, PROGRAM.name)
    name = this_class()
    counts = sorted({1, len(os.sched_getaffinity(0))})
    documents = {n: measure(n, ["--quick"] if options.quick else []) for n in counts}
    failed = [row for document in documents.values()
              for row in document["benchmarks"] if "error_occurred" in row]
    if failed:
        sys.exit(f"{failed[0]['name']}: {failed[0]['error_message']}")
    page = arguments.read_text(options.page)
    options.page.write_text(replaced(page, name, section(name, documents)), encoding="utf-8")
    print(f"{options.page}: {name}")


if __name__ == "__main__":
    arguments.call(main)
