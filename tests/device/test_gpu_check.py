#!/usr/bin/env python3
"""scripts/bench/gpu_check.sh --emulated: every part of the report is there, and a failure shows.
Usage: test_gpu_check.py FOLDER_OF_PROGRAMS, with the emulator inside."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    build = next(p for p in programs.parents if (p / "lib").is_dir())
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.md"
        done = subprocess.run(["bash", ROOT / "scripts/bench/gpu_check.sh", build, report, "--emulated"], capture_output=True, text=True, timeout=900)
        text = report.read_text(encoding="utf-8") if report.exists() else ""
        none = subprocess.run(["bash", ROOT / "scripts/bench/gpu_check.sh", build, report, "--emulated"], capture_output=True, text=True, timeout=100,
                              env={**os.environ, "NMT_EMULATED_DEVICES": "0"})
    wrong = []
    if none.returncode != 1 or "FAILED: there is no GPU to test: there is no CUDA device" not in none.stdout:
        wrong.append(f"without a device, status {none.returncode}: {none.stdout}")
    if done.returncode != 0:
        wrong.append(f"status {done.returncode}: {done.stdout}{done.stderr}")
    if not re.search(r"\| parity of kernels \| [1-9]\d* tests passed", text):
        wrong.append("no kernel was tested")
    if not re.search(r"\| parity of models \| [1-9]\d* tests passed", text):
        wrong.append("no model was tested")
    if not re.search(r"\| training: cuda \| 3 updates, loss [\d.]+, [1-9]\d* target tokens/s", text):
        wrong.append("the report has no speed of training")
    for part in ("# GPU check", "the emulator: no GPU has run any of this", " on cuda:0 (", "| compute-sanitizer | not run", "| training: cuda | 3 updates", "| translating: cpu on cuda | BLEU",
                 "| loss of cuda within 3 % of the CPU's | yes", "| loss with cuDNN's layers within 3 % of ours | yes", "| update | cpu | cuda |", "| nmt-bench | not run"):
        if part not in text:
            wrong.append(f"the report has no '{part}'")
    if "FAILED" in text:
        wrong.append("a part has failed")
    print("\n".join([*wrong, *([text] if wrong else ["ok"])]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
