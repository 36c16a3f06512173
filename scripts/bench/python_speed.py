#!/usr/bin/env python3
"""Compares the speed of the Python package with nmt-translate, in sentences per second.

    python_speed.py BUILD_FOLDER MODEL FILE [--runs 5] [--threads N]

Runs of both alternate. nmt-translate reports its time without loading; so does this script for
translate_batch. PYTHONPATH names the installed package; without it, the package of the build is
installed in a temporary prefix."""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from common import arguments as checks


def install(build, folder):
    for component in ("libraries", "python"):
        subprocess.run(["cmake", "--install", build, "--component", component, "--prefix", folder],
                       check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(folder).rglob("nmt/__init__.py")).parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=checks.folder)
    parser.add_argument("model", type=checks.folder)
    parser.add_argument("file", type=checks.file)
    parser.add_argument("--runs", type=checks.whole(), default=5)
    parser.add_argument("--threads", type=checks.whole(), default=os.cpu_count())
    arguments = parser.parse_args()
    lines = checks.read_lines(arguments.file)
    checks.need_programs(arguments.build / "bin", "nmt-translate")
    with tempfile.TemporaryDirectory() as folder:
        if not os.environ.get("PYTHONPATH"):
            sys.path.insert(0, str(install(arguments.build, folder)))
        import nmt
        translator = nmt.Translator(str(arguments.model), intra_threads=arguments.threads)
        speeds = {"nmt-translate": [], "python": []}
        for _ in range(arguments.runs):
            done = subprocess.run([arguments.build / "bin/nmt-translate", "-m", arguments.model,
                                   "--cpu-threads", str(arguments.threads), "-i", arguments.file,
                                   "-o", os.path.join(folder, "translations")],
                                  capture_output=True, text=True, check=True)
            speeds["nmt-translate"].append(float(re.search(r"([\d.]+) sentences/s",
                                                           done.stderr)[1]))
            start = time.perf_counter()
            results = translator.translate_batch(lines)
            speeds["python"].append(len(lines) / (time.perf_counter() - start))
        written = pathlib.Path(folder, "translations").read_text(encoding="utf-8").split("\n")[:-1]
        same = written == [result.hypotheses[0] for result in results]
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, value in medians.items():
        print(f"{name:14} {value:8.1f} sentences/s (median of {arguments.runs})")
    print(f"ratio          {medians['python'] / medians['nmt-translate']:8.3f}; translations "
          f"{'equal' if same else 'DIFFER'}")
    return 0 if same else 1


if __name__ == "__main__":
    checks.call(main)
