#!/usr/bin/env bash
# Scores translations with sacreBLEU in the virtual environment .venv, which is created on demand.
# The arguments are those of sacreBLEU, which nmt-bleu shares:
#   scripts/bench/quality/score.sh ref.de -i mine.de -m bleu chrf
#   scripts/bench/quality/score.sh --python prints the path of a Python with sacreBLEU and rouge-score
set -euo pipefail
unset CDPATH
environment=$(cd "$(dirname "$0")/../../.." && pwd)/.venv
python=$environment/bin/python
system=python3  # as in scripts/dev/python_venv.sh
[ -x /usr/bin/python3 ] && system=/usr/bin/python3
packages=(sacrebleu==2.6.0 rouge-score==0.1.2 'numpy>=2')

fail() {
  echo "score: $1" >&2
  exit 1
}

# Tests may run this script concurrently. Without locks it works as well, but for that.
{ exec 9<"${environment%/*}" && flock 9; } 2>/dev/null || true
if ! "$python" -c 'import numpy, rouge_score, sacrebleu' 2>/dev/null; then
  [ -x "$python" ] && "$python" -m pip --version >/dev/null 2>&1 || "$system" -m venv "$environment" >&2 ||
    fail "cannot create a virtual environment in $environment; scripts/setup.sh installs python3-venv"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "${packages[@]}" >&2 ||
    fail "pip could not install ${packages[*]} in $environment"
fi
exec 9>&-
if [ "${1:-}" = --python ]; then
  echo "$python"
  exit 0
fi
exec "$python" -m sacrebleu "$@"
