#!/usr/bin/env bash
# Runs all checks that need a GPU: parity tests, the same tests under compute-sanitizer, short
# trainings in float32 and bfloat16 compared with the CPU, and benchmarks. Writes one report in
# Markdown.
# Usage: scripts/bench/gpu_check.sh BUILD [REPORT.md] [--data FOLDER] [--quick] [--emulated]
# Needs only the build directory and python3; scripts/bench/make_portable.sh creates a build
# directory that includes its libraries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/gpu_check.py" "$@"
