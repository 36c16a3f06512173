#!/usr/bin/env bash
# Prints the path of a Python that has what building and testing the Python module needs. Creates
# the virtual environment .venv on demand, from the distribution's Python.
set -euo pipefail
unset CDPATH
environment=$(cd "$(dirname "$0")/../.." && pwd)/.venv
python=$environment/bin/python
packages=('nanobind>=2.4,<4' 'numpy>=2' 'pytest>=8' 'mypy>=1.10' 'sacrebleu==2.6.0')
system=python3
[ -x /usr/bin/python3 ] && system=/usr/bin/python3

fail() {
  echo "python_venv: $1" >&2
  exit 1
}

version='import sys; print(*sys.version_info[:2], sep=".")'
# Tests may run this script concurrently. Without locks it works as well, but for that.
{ exec 9<"${environment%/*}" && flock 9; } 2>/dev/null || true
if ! "$python" -c 'import nanobind, numpy, pytest, mypy, sacrebleu' 2>/dev/null; then
  [ -x "$python" ] && "$python" -m pip --version >/dev/null 2>&1 || "$system" -m venv "$environment" >&2 ||
    fail "cannot create a virtual environment in $environment; scripts/setup.sh installs python3-venv"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "${packages[@]}" >&2 ||
    fail "pip could not install ${packages[*]} in $environment"
fi
[ "$("$python" -c "$version")" = "$("$system" -c "$version")" ] ||
  fail "$environment has Python $("$python" -c "$version"), $system has $("$system" -c "$version"); remove $environment"
echo "$python"
