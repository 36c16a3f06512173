#!/usr/bin/env bash
# Everything that wants a GPU, in one go: parity tests, the same under compute-sanitizer, short trainings in float32 and bfloat16
# against the CPU's, benchmarks; one report in Markdown.
# Usage: scripts/bench/gpu_check.sh BUILD [REPORT.md] [--data FOLDER] [--quick] [--emulated]
# Needs the build directory and python3 alone; scripts/bench/make_portable.sh makes one that has its libraries beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/gpu_check.py" "$@"
