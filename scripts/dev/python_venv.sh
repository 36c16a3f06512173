#!/usr/bin/env bash
# Prints the path of a Python that has what building and testing the Python module needs. Creates
# the virtual environment .venv on demand, from the distribution's Python.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
need_packages nanobind,numpy,pytest,mypy,sacrebleu \
  'nanobind>=2.4,<4' 'numpy>=2' 'pytest>=8' 'mypy>=1.10' sacrebleu==2.6.0
version='import sys; print(*sys.version_info[:2], sep=".")'
[ "$("$python" -c "$version")" = "$("$system" -c "$version")" ] ||
  fail "$environment has Python $("$python" -c "$version")," \
    "$system has $("$system" -c "$version"); remove $environment"
echo "$python"
