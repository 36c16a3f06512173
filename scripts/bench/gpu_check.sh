#!/usr/bin/env bash
# Checks and measures a build on a machine with a GPU, in five parts that fit short calls: parity
# tests, benchmarks, comparisons and profiles, training, memory checks. Each part has a report file
# that a later call continues; the reports are joined to one page.
# Usage: scripts/bench/gpu_check.sh BUILD [--only PART] [--limit SECONDS] [--out FOLDER]
#        scripts/bench/gpu_check.sh --join FOLDER... PAGE.md
# Needs only the build directory and python3; scripts/bench/make_portable.sh creates a build
# directory that includes its libraries. docs/design/checking-a-gpu.md describes the options.
set -euo pipefail
unset CDPATH
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/gpu_check.py" "$@"
